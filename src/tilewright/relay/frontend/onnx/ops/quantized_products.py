"""Products and convolutions of quantised tensors, as operators of the quantised dialect."""

from __future__ import annotations

from typing import cast

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.convolution import kernel_size
from tilewright.relay.frontend.onnx.ops.matrices import Products, matmul
from tilewright.relay.frontend.onnx.ops.quantization_arithmetic import (
    STORED,
    Quantized,
    known_parameters,
    quantized_of,
)
from tilewright.relay.frontend.onnx.ops.windows import window_of
from tilewright.relay.qnn.op.products import QnnBatchMatmulAttrs

_ONE = const(np.float32(1))
"""The scale of integers that are multiplied without theirs."""


def _zero_point(node: Node, zero: RelayExpr | None, channels: int | None = None) -> RelayExpr | None:
    """A zero point as the dialect takes it, one for all or, where there are ``channels``, one for each; None for any
    other."""
    if zero is None:
        return const(0, "int32")
    shape, value = node.shape(zero), node.value(zero)
    if shape not in ((), (1,)) and (channels is None or shape != (channels,)):
        return None
    if value is not None:
        return const(value.astype("int32").reshape(()) if value.size == 1 else value.astype("int32"))
    return relay.reshape(zero, ()) if shape == (1,) else zero


def dialect_product(
    node: Node, a: RelayExpr, b: RelayExpr, a_zero: RelayExpr | None, b_zero: RelayExpr | None
) -> RelayExpr | None:
    """The product of quantised matrices, as int32; None where the dialect has none for these types or zero points."""
    if any(quantized_of(node, each) not in STORED for each in (a, b)):
        return None
    columns = node.shape(b)[-1] if node.rank(b) == 2 else None
    of_a, of_b = _zero_point(node, a_zero), _zero_point(node, b_zero, columns)
    depth = node.shape(a)[-1] if node.rank(a) else None
    if of_a is None or of_b is None or depth is None or depth == 0:
        return None
    parameters = (of_a, of_b, _ONE, _ONE)

    def by_rows(rows: Expr, matrix: Expr) -> Expr:
        return relay.qnn.op.dense(rows, matrix, *parameters, units=columns)

    def in_batches(first: Expr, second: Expr) -> Expr:
        return Call(
            Op.get("qnn.batch_matmul"),
            (first, second, *parameters),
            QnnBatchMatmulAttrs(transpose_b=False),
        )

    products = Products(
        by_rows, lambda rows, matrix: by_rows(rows, relay.transpose(matrix, (1, 0))), in_batches
    )
    return matmul(node, a, b, products=products)


def dialect_convolution(
    node: Node,
    data: RelayExpr,
    weight: RelayExpr,
    data_zero: RelayExpr | None,
    weight_zero: RelayExpr | None,
    bias: RelayExpr | None,
) -> RelayExpr | None:
    """The convolution of quantised images, as int32; None where the dialect has none."""
    if node.rank(data) != 4 or any(quantized_of(node, each) not in STORED for each in (data, weight)):
        return None
    channels = node.shape(weight)[0]
    of_data, of_weight = _zero_point(node, data_zero), _zero_point(node, weight_zero, channels)
    if of_data is None or of_weight is None or channels is None:
        return None
    moved, window = window_of(node, cast(Expr, data), kernel_size(node, cast(Expr, weight), 2))
    if moved is not data:
        return None
    made = relay.qnn.op.conv2d(
        data,
        weight,
        of_data,
        of_weight,
        _ONE,
        _ONE,
        kernel_size=window.kernel,
        channels=channels,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=int(node.attr("group", 1)),
    )
    return made if bias is None else relay.nn.bias_add(made, bias, axis=1)


def product_scales(
    node: Node, first: RelayExpr, second: RelayExpr, alpha: float = 1.0
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
    """The scales of products, one or a vector of them; None where they are not known, or the first operand's rows have
    several."""
    one, other = node.value(first), node.value(second)
    if one is None or other is None or one.size != 1 or other.ndim > 1:
        return None
    if any(each.dtype != np.float32 for each in (one, other)):
        return None
    made = np.float32(one.reshape(())) * other
    if alpha != 1:
        made = made * np.float32(alpha)
    return made.reshape(()) if made.size == 1 else made


def dialect_requantized(
    node: Node,
    product: RelayExpr,
    scales: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None,
    scale: RelayExpr,
    zero: RelayExpr | None,
    kind: Quantized,
    axis: int,
) -> RelayExpr | None:
    """Sums of products as integers with a scale of their own; None where a parameter is not known."""
    known = known_parameters(node, scale, zero)
    if known is None or not known.is_scalar or scales is None or kind not in STORED:
        return None
    if not (np.isfinite(scales) & (scales > 0)).all():
        return None
    zeros: Constant = const(0, "int32")
    return relay.qnn.op.requantize(
        product,
        const(scales),
        zeros,
        known.scale,
        known.zero,
        axis=axis,
        rounding="TOEVEN",
        out_dtype=kind.dtype,
        compute_dtype="float32",
    )
