"""Convolutions and matrix products: sums of 32 bits, whose scale is the product of the factors' scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.qnn.integers.affine import (
    Affine,
    NotInteger,
    TensorAffineType,
    integer_rule,
    product_scale,
    rescaled,
    scalar,
    scalar_type,
    tensor_type,
)

Rewritten = list[Any]


def _product(
    name: str, expr: Call, affine: dict[RelayExpr, Affine], axis: int, weight_axis: int
) -> Rewritten:
    """The quantised operator; scales of the weights may be per output channel, which is ``axis`` of the result."""
    data, weight = expr.args
    if data not in affine or weight not in affine:
        raise NotInteger("a factor is not quantised")
    of_data, of_weight = scalar_type(affine[data]), tensor_type(affine[weight])
    if any(kind.dtype not in ("int8", "uint8") for kind in (of_data, of_weight)):
        raise NotInteger("factors are integers of 8 bits")
    if not of_weight.is_scalar and of_weight.axis != weight_axis:
        raise NotInteger("the weights' scales do not belong to output channels")
    made = Op.get(f"qnn.{name}").get_attr("AttrsClass")
    attrs = made(**{**dict(expr.attrs.items()), "out_dtype": "int32"})  # type: ignore[union-attr]
    parameters = (of_data.zero_point, of_weight.zero_point, of_data.scale, of_weight.scale)
    product = Call(Op.get(f"qnn.{name}"), (data, weight, *parameters), attrs)
    scale = product_scale(of_data.scale, of_weight.scale)
    return [product, TensorAffineType(scale, const(0, "int32"), "int32", axis)]


@integer_rule("nn.conv2d")
def _conv2d(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    attrs: Any = expr.attrs
    layout = attrs.out_layout or attrs.data_layout
    return _product("conv2d", expr, affine, layout.find("C"), attrs.kernel_layout.find("O"))


@integer_rule("nn.conv2d_transpose")
def _conv2d_transpose(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    attrs: Any = expr.attrs
    layout = attrs.out_layout or attrs.data_layout
    return _product("conv2d_transpose", expr, affine, layout.find("C"), attrs.kernel_layout.find("O"))


@integer_rule("nn.dense")
def _dense(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    return _product("dense", expr, affine, -1, 0)


@integer_rule("nn.batch_matmul")
def _batch_matmul(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    if expr.args[1] in affine:
        scalar_type(affine[expr.args[1]])
    return _product("batch_matmul", expr, affine, -1, -1)


@integer_rule("nn.bias_add")
def _bias_add(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """A bias in the scale of the sums."""
    data, bias = expr.args
    kind = tensor_type(affine[data])
    attrs: Any = expr.attrs
    if bias in affine:
        of_bias = tensor_type(affine[bias])
        if not _same_by_channel(of_bias, kind):
            bias = rescaled(bias, of_bias, kind, "int32")
        elif of_bias.dtype != "int32":
            bias = call("cast", bias, dtype="int32")
    elif isinstance(bias, Constant):
        bias = _bias_constant(bias, kind)
    else:
        raise NotInteger("the bias is not quantised")
    if kind.dtype != "int32":
        data = call("cast", data, dtype="int32")
    made = call("nn.bias_add", data, bias, axis=attrs.axis)
    return [made, TensorAffineType(kind.scale, kind.zero_point, "int32", kind.axis)]


def _same_by_channel(of_bias: TensorAffineType, kind: TensorAffineType) -> bool:
    """The same scales; those of a bias lie along its only axis. A sum's zero point is zero."""
    moved = TensorAffineType(of_bias.scale, of_bias.zero_point, of_bias.dtype, kind.axis)
    zeros = not scalar(of_bias.zero_point).any() and not scalar(kind.zero_point).any()
    scales = scalar(moved.scale).reshape(-1), scalar(kind.scale).reshape(-1)
    return zeros and scales[0].shape == scales[1].shape and bool(np.allclose(*scales, rtol=1e-6, atol=0))


def _bias_constant(bias: Constant, kind: TensorAffineType) -> Constant:
    if scalar(kind.zero_point).any():
        raise NotInteger("a bias belongs to sums")
    value = np.asarray(bias.data.numpy(), np.float64) / scalar(kind.scale).astype(np.float64).reshape(-1)
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    return const(np.asarray(np.clip(np.floor(value + 0.5), least, most)).astype(np.int32))
