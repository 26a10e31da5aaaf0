"""Elementwise operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.infer import type_of
from tilewright.relay.op.calls import call
from tilewright.relay.qnn.integers.affine import (
    Affine,
    NotInteger,
    TensorAffineType,
    integer_rule,
    product_scale,
    quantized_constant,
    rescaled,
    saturated,
    scalar,
    scalar_type,
    tensor_type,
)
from tilewright.relay.qnn.op.parameters import limits, spread_array

Rewritten = list[Any]


def _rank(expr: RelayExpr) -> int:
    kind: Any = type_of(expr)
    return len(kind.shape)


def _bound(value: float, kind: TensorAffineType, rank: int) -> np.ndarray[Any, Any]:
    """The integers that stand for a real number, one for each channel."""
    scale, zero = scalar(kind.scale).astype(np.float64), scalar(kind.zero_point).astype(np.float64)
    moved = np.clip(np.floor(value / scale + 0.5) + zero, *limits(kind.dtype))
    return spread_array(np.asarray(moved).astype(kind.dtype), rank, kind.axis)


@integer_rule("nn.relu")
def _relu(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """What stands for less than zero becomes the zero point."""
    kind = tensor_type(affine[expr.args[0]])
    least = _bound(0.0, kind, _rank(expr.args[0]))
    return [call("maximum", expr.args[0], const(least)), kind]


@integer_rule("clip")
def _clip(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """Bounds in integers, one for each channel where scales are."""
    kind, attrs = tensor_type(affine[expr.args[0]]), expr.attrs
    low, high = (_bound(value, kind, _rank(expr.args[0])) for value in (attrs.a_min, attrs.a_max))  # type: ignore[union-attr]
    if low.size == 1:
        made = call("clip", expr.args[0], a_min=int(low.reshape(-1)[0]), a_max=int(high.reshape(-1)[0]))
    else:
        made = call("minimum", call("maximum", expr.args[0], const(low)), const(high))
    return [made, kind]


def _in_scale(expr: RelayExpr, affine: dict[RelayExpr, Affine], wanted: TensorAffineType) -> RelayExpr:
    """An operand as int32 integers of a scale; of a constant, those that stand for it."""
    if expr in affine:
        return rescaled(expr, tensor_type(affine[expr]), wanted, "int32")
    if isinstance(expr, Constant):
        return quantized_constant(np.asarray(expr.data.numpy()), wanted)
    raise NotInteger("an operand is not quantised")


@integer_rule("add", "subtract", "maximum", "minimum")
def _in_one_scale(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """Both operands in the scale that the result is wanted in. The zero point is in both: in a sum one is too many, in
    a difference one is missing."""
    wanted = scalar_type(affine[expr])
    left, right = (_in_scale(operand, affine, wanted) for operand in expr.args)
    made: RelayExpr = Call(expr.op, (left, right))
    zero = int(scalar(wanted.zero_point).reshape(-1)[0])
    back = {Op.get("add"): "subtract", Op.get("subtract"): "add"}.get(expr.op)  # type: ignore[call-overload]
    if zero and back:
        made = call(back, made, const(zero, "int32"))
    return [saturated(made, wanted.dtype), wanted]


@integer_rule("multiply")
def _multiply(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """Products of shifted integers, which then get the scale that is wanted."""
    wanted = scalar_type(affine[expr])
    shifted: list[RelayExpr] = []
    scales: list[RelayExpr] = []
    for operand in expr.args:
        if operand in affine:
            kind = scalar_type(affine[operand])
            if kind.dtype not in ("int8", "uint8"):
                raise NotInteger("products of wider integers do not fit into 32 bits")
            zero = int(scalar(kind.zero_point).reshape(-1)[0])
            wide = call("cast", operand, dtype="int32")
            shifted.append(call("subtract", wide, const(zero, "int32")) if zero else wide)
            scales.append(kind.scale)
        elif isinstance(operand, Constant) and operand.data.numpy().size:
            integers, scale = _symmetric(np.asarray(operand.data.numpy(), np.float64))
            shifted.append(integers)
            scales.append(scale)
        else:
            raise NotInteger("an operand is not quantised")
    product = TensorAffineType(product_scale(*scales), const(0, "int32"), "int32")
    return [rescaled(call("multiply", *shifted), product, wanted, wanted.dtype), wanted]


def _symmetric(value: np.ndarray[Any, Any]) -> tuple[RelayExpr, RelayExpr]:
    """A constant as integers of 15 bits, and their scale."""
    most = float(np.abs(value).max()) or 1.0
    scale = np.float32(most / 32767)
    return const(np.asarray(np.rint(value / scale)).astype(np.int32)), const(scale)
