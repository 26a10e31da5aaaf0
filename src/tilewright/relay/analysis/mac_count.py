"""The number of multiply-accumulate operations of a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call
from tilewright.support.errors import TilewrightError
from tilewright.tir.data_layout import Layout


def _shape(expr: RelayExpr, what: str) -> tuple[int, ...]:
    """The constant shape of a typed expression."""
    found = expr.checked_type
    if not isinstance(found, TensorType):
        raise TilewrightError(f"{what} is a tensor, not {found}", span=expr.span)
    return found.concrete_shape


def _channels(shape: tuple[int, ...], layout: str) -> int:
    """The number of channels of a tensor, whose axis may be split into blocks."""
    named = Layout(layout)
    inner = named.index_of("c")
    return shape[named.index_of("C")] * (shape[inner] if inner >= 0 else 1)


def _kernel_size(call: Call) -> int:
    attrs: Any = call.attrs
    if attrs.kernel_size is not None:
        return math.prod(int(extent) for extent in attrs.kernel_size)
    layout = Layout(attrs.kernel_layout)
    weight = _shape(call.args[1], "a weight")
    return math.prod(weight[layout.index_of(axis)] for axis in "DHW" if axis in layout)


def _convolution(call: Call) -> int:
    """Each output element takes a product for each element of the window and each input channel of its group."""
    attrs: Any = call.attrs
    channels = _channels(_shape(call.args[0], "the data"), attrs.data_layout)
    return math.prod(_shape(call, "the result")) * _kernel_size(call) * channels // int(attrs.groups)


def _transposed_convolution(call: Call) -> int:
    """Each input element takes a product for each element of the window and each output channel of its group."""
    attrs: Any = call.attrs
    channels = _channels(_shape(call, "the result"), attrs.out_layout or attrs.data_layout)
    return math.prod(_shape(call.args[0], "the data")) * _kernel_size(call) * channels // int(attrs.groups)


def _dense(call: Call) -> int:
    return math.prod(_shape(call, "the result")) * _shape(call.args[0], "the data")[-1]


def _matrix_product(call: Call) -> int:
    """The summed extent is the last of the first operand, or the one before where that is transposed."""
    shape = _shape(call.args[0], "the first operand")
    transposed = bool(getattr(call.attrs, "transpose_a", False))
    return math.prod(_shape(call, "the result")) * shape[-2 if transposed else -1]


def _attention(call: Call) -> int:
    """Each query with each key, once over the channels of the keys and once over those of the values."""
    attrs: Any = call.attrs
    query, key, value = (
        dict(zip(layout, _shape(operand, "an operand"), strict=True))
        for layout, operand in zip(attrs.layouts, call.args[:3], strict=False)
    )
    pairs = math.prod((query["N"], attrs.heads, query["T"], key["T"]))
    return int(pairs * (query["C"] + value["C"]))


def _recurrent(call: Call) -> int:
    """Each step multiplies the state of every unit with the weights of all gates. The product with the inputs is a
    layer of its own."""
    steps, batch, _ = _shape(call.args[0], "the inputs")
    _, hidden, gates, _ = _shape(call.args[1], "the weight")
    return steps * batch * gates * hidden * hidden


MAC_COUNTS: dict[str, Callable[[Call], int]] = {
    **{f"nn.conv{rank}d": _convolution for rank in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": _convolution,
    "nn.contrib_depthwise_conv2d_NCHWc": _convolution,
    **{f"nn.conv{rank}d_transpose": _transposed_convolution for rank in (1, 2, 3)},
    "nn.dense": _dense,
    "nn.contrib_dense_pack": _dense,
    "nn.contrib_dense_weight_only": _dense,
    "nn.matmul": _matrix_product,
    "nn.batch_matmul": _matrix_product,
    "nn.contrib_attention": _attention,
    "nn.contrib_recurrent": _recurrent,
}
"""The operators that count. ``register_op_attr(name, "FMacCount", function)`` adds one from outside."""


def get_total_mac_number(expr: RelayExpr) -> int:
    """The number of multiply-accumulate operations of convolutions and matrix products in an expression with types
    and constant shapes. A call that several others use counts once."""
    total = 0
    for found in post_order(expr):
        if isinstance(found, Call) and isinstance(found.op, Op):
            count = found.op.get_attr("FMacCount") or MAC_COUNTS.get(found.op.name)
            if count is not None:
                total += int(count(found))
    return total
