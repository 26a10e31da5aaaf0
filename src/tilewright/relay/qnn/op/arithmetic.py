"""Elementwise arithmetic of quantised tensors, and their concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import scalar_type
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleGetItem, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, joined
from tilewright.relay.op.layout_rules import broadcast as broadcast_layouts
from tilewright.relay.op.relations import broadcast
from tilewright.relay.qnn.op.parameters import (
    Array,
    check_scale,
    check_zero_point,
    is_same,
    limits,
    spread,
    value_of,
    wide,
)
from tilewright.relay.qnn.op.quantization import RequantizeAttrs, requantized
from tilewright.relay.qnn.op.rules import register_qnn_canonicalize

_ARGUMENTS = (
    *("lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point"),
    *("output_scale", "output_zero_point"),
)


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """That of broadcasting operators, with scalar parameters."""
    made = broadcast(types[:2], attrs)
    for place, what in ((2, "the left"), (4, "the right"), (6, "the output's")):
        if not check_scale(types[place], f"{what} scale") or not check_zero_point(
            types[place + 1], f"{what} zero point"
        ):
            return None
    return made


def _rescaled(value: Array, scales: tuple[Array, Array, Array, Array], out_dtype: str) -> Array:
    attrs = RequantizeAttrs(out_dtype=out_dtype)
    reference = Op.get("qnn.requantize").get_attr("FReference")
    return np.asarray(reference(attrs, value, *scales))


def _saturated(value: Array, like: Array) -> Array:
    least, most = limits(str(like.dtype))
    return np.asarray(np.clip(value, least, most)).astype(like.dtype)


def _sum_reference(sign: int) -> Any:
    def reference(attrs: Any, lhs: Array, rhs: Array, *given: Array) -> Array:
        ls, lz, rs, rz, os, oz = given
        left = _rescaled(lhs, (ls, lz, os, oz), "int32").astype(np.int64)
        right = _rescaled(rhs, (rs, rz, os, oz), "int32").astype(np.int64)
        return _saturated(left + sign * (right - oz.astype(np.int64).reshape(())), lhs)

    return reference


def _product_reference(attrs: Any, lhs: Array, rhs: Array, *given: Array) -> Array:
    ls, lz, rs, rz, os, oz = given
    product = (lhs.astype(np.int32) - lz.astype(np.int32).reshape(())) * (
        rhs.astype(np.int32) - rz.astype(np.int32).reshape(())
    )
    nothing = np.zeros((), np.int32)
    return _rescaled(product, (np.asarray(ls * rs), nothing, os, oz), str(lhs.dtype))


def _in_output_scale(
    data: RelayExpr, scale: RelayExpr, zero: RelayExpr, out: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    """int32 integers of the output's scale and zero point; ``types`` are those of the data and of its parameters, then
    of the output's."""
    if is_same(scale, out[0]) and is_same(zero, out[1]):
        return wide(data)
    rank = len(types[0].shape)  # type: ignore[attr-defined]
    return requantized(data, (scale, zero, *out), types, rank, RequantizeAttrs(out_dtype="int32"))


def _saturate(value: RelayExpr, dtype: str) -> RelayExpr:
    least, most = limits(dtype)
    return call("cast", call("clip", value, a_min=least, a_max=most), dtype=dtype)


def _sum_rule(name: str) -> Any:
    def rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
        lhs, rhs, ls, lz, rs, rz, os, oz = arguments
        left = _in_output_scale(lhs, ls, lz, (os, oz), (types[0], types[2], types[3], types[6], types[7]))
        right = _in_output_scale(rhs, rs, rz, (os, oz), (types[1], types[4], types[5], types[6], types[7]))
        zero = wide(spread(oz, types[7], 0, 0))
        # The zero point is in both: one is too many in a sum, and one is missing in a difference.
        back = "subtract" if name == "add" else "add"
        return _saturate(call(back, call(name, left, right), zero), str(types[0].dtype))

    return rule


def _product_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    lhs, rhs, ls, lz, rs, rz, os, oz = arguments
    left = call("subtract", wide(lhs), wide(spread(lz, types[3], 0, 0)))
    right = call("subtract", wide(rhs), wide(spread(rz, types[5], 0, 0)))
    one, other = value_of(ls), value_of(rs)
    if one is not None and other is not None:
        scale: RelayExpr = const((one * other).reshape(()))
    else:
        scale = call("multiply", spread(ls, types[2], 0, 0), spread(rs, types[4], 0, 0))
    rank = len(types[-1].shape)
    kinds = (types[-1], scalar_type("float32"), scalar_type("int32"), types[6], types[7])
    wanted = RequantizeAttrs(out_dtype=str(types[0].dtype))
    product = call("multiply", left, right)
    return requantized(product, (scale, const(0, "int32"), os, oz), kinds, rank, wanted)


def _layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Those of broadcasting operators; scales and zero points have none."""
    made = broadcast_layouts(attrs, offered[:2], original[:2], types[:2])
    return Layouts((*made.inputs, *((None,) * (len(types) - 2))), made.outputs, made.attrs)


def _define(name: str, reference: Any, rule: Any, description: str) -> Op:
    made = define(
        f"qnn.{name}",
        layout=_layouts,
        arguments=_ARGUMENTS,
        relation=_relation,
        reference=reference,
        kind=OpPattern.OPAQUE,
        level=11,
        description=description,
    )
    register_qnn_canonicalize(f"qnn.{name}", rule)
    return made


_add = _define("add", _sum_reference(1), _sum_rule("add"), "The sum of quantised tensors.")
_subtract = _define(
    "subtract", _sum_reference(-1), _sum_rule("subtract"), "The difference of quantised tensors."
)
_mul = _define("mul", _product_reference, _product_rule, "The product of quantised tensors, by elements.")


def add(
    lhs: RelayExpr,
    rhs: RelayExpr,
    lhs_scale: RelayExpr,
    lhs_zero_point: RelayExpr,
    rhs_scale: RelayExpr,
    rhs_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
) -> Call:
    """The sum, with the output's scale and zero point."""
    left, right = (lhs_scale, lhs_zero_point), (rhs_scale, rhs_zero_point)
    return Call(_add, (lhs, rhs, *left, *right, output_scale, output_zero_point))


def subtract(
    lhs: RelayExpr,
    rhs: RelayExpr,
    lhs_scale: RelayExpr,
    lhs_zero_point: RelayExpr,
    rhs_scale: RelayExpr,
    rhs_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
) -> Call:
    """The difference, with the output's scale and zero point."""
    left, right = (lhs_scale, lhs_zero_point), (rhs_scale, rhs_zero_point)
    return Call(_subtract, (lhs, rhs, *left, *right, output_scale, output_zero_point))


def mul(
    lhs: RelayExpr,
    rhs: RelayExpr,
    lhs_scale: RelayExpr,
    lhs_zero_point: RelayExpr,
    rhs_scale: RelayExpr,
    rhs_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
) -> Call:
    """The product by elements, with the output's scale and zero point."""
    left, right = (lhs_scale, lhs_zero_point), (rhs_scale, rhs_zero_point)
    return Call(_mul, (lhs, rhs, *left, *right, output_scale, output_zero_point))


# concatenate


@attributes
class QnnConcatenateAttrs(OpAttrs):
    """The axis along which tensors are joined."""

    axis: int = 0


def _fields(kind: Type, what: str, count: int | None = None) -> Sequence[Type]:
    if not isinstance(kind, TupleType):
        raise RelationError(f"{what} are a tuple, not {kind}")
    if count is not None and len(kind.fields) != count:
        raise RelationError(f"{what} are {count}, as many as tensors, not {len(kind.fields)}")
    return kind.fields


def _concatenate_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    count = len(_fields(types[0], "the data"))
    for number, kind in enumerate(_fields(types[1], "the scales", count)):
        if not check_scale(kind, f"scale {number}"):
            return None
    for number, kind in enumerate(_fields(types[2], "the zero points", count)):
        if not check_zero_point(kind, f"zero point {number}"):
            return None
    if not check_scale(types[3], "the output's scale") or not check_zero_point(
        types[4], "the output's zero point"
    ):
        return None
    ordinary = Op.get("concatenate").get_attr("TypeRelation")[1]
    made: Type | None = ordinary(types[:1], attrs)
    return made


def _concatenate_reference(
    attrs: Any, data: Any, scales: Any, zero_points: Any, scale: Array, zero_point: Array
) -> Array:
    parts = [
        _rescaled(part, (own, zero, scale, zero_point), str(part.dtype))
        for part, own, zero in zip(data, scales, zero_points, strict=True)
    ]
    return np.concatenate(parts, attrs.axis)


def _concatenate_rule(attrs: Any, arguments: Any, types: Any) -> RelayExpr:
    data, scales, zero_points, scale, zero_point = arguments
    parts = []
    for number, kind in enumerate(types[0].fields):
        part, own, zero = (_field(one, number) for one in (data, scales, zero_points))
        if not (is_same(own, scale) and is_same(zero, zero_point)):
            kinds = (kind, types[1].fields[number], types[2].fields[number], types[3], types[4])
            wanted = RequantizeAttrs(out_dtype=str(kind.dtype))
            part = requantized(part, (own, zero, scale, zero_point), kinds, len(kind.shape), wanted)
        parts.append(part)
    return call("concatenate", Tuple(parts), axis=attrs.axis)


def _field(expr: RelayExpr, number: int) -> RelayExpr:
    return expr.fields[number] if isinstance(expr, Tuple) else TupleGetItem(expr, number)


def _concatenate_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """Those of ``concatenate``; each tensor has a scale and a zero point, and so has the result."""
    count = (len(types) - 2) // 3
    made = joined(attrs, offered[:count], original[:count], types[:count])
    return Layouts((*made.inputs, *((None,) * (len(types) - count))), made.outputs, made.attrs)


_concatenate = define(
    "qnn.concatenate",
    layout=_concatenate_layouts,
    arguments=("data", "input_scales", "input_zero_points", "output_scale", "output_zero_point"),
    attrs=QnnConcatenateAttrs,
    relation=_concatenate_relation,
    reference=_concatenate_reference,
    kind=OpPattern.OPAQUE,
    level=11,
    description="Quantised tensors one after the other along an axis, with one scale and zero point.",
)
register_qnn_canonicalize("qnn.concatenate", _concatenate_rule)


def concatenate(
    data: RelayExpr | Sequence[RelayExpr],
    input_scales: RelayExpr | Sequence[RelayExpr],
    input_zero_points: RelayExpr | Sequence[RelayExpr],
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int,
) -> Call:
    """Quantised tensors one after the other along an axis, each brought to the output's scale and zero point."""
    tuples = [_as_tuple(one) for one in (data, input_scales, input_zero_points)]
    return Call(_concatenate, (*tuples, output_scale, output_zero_point), QnnConcatenateAttrs(axis=axis))


def _as_tuple(given: RelayExpr | Sequence[RelayExpr]) -> RelayExpr:
    return given if isinstance(given, RelayExpr) else Tuple(given)
