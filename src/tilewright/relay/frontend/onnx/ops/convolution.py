"""Convolutions: plain, transposed, deformable, causal with a state, and those that Microsoft's optimiser fuses."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.fused import fused_activation
from tilewright.relay.frontend.onnx.ops.partial_shapes import check_constants, part
from tilewright.relay.frontend.onnx.ops.windows import (
    KERNEL_LAYOUTS,
    LAYOUTS,
    Window,
    attribute_list,
    operators,
    spatial_rank,
    window_of,
)
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter

_CONVOLUTIONS = operators("conv")
_TRANSPOSED = operators("conv", "_transpose")
# The letters of a transposed kernel: the data's channels come first, whatever they are called.
_TRANSPOSED_LAYOUTS = {1: "OIW", 2: "IOHW", 3: "OIDHW"}
_END = 2**31 - 1


def kernel_size(node: Node, weight: Expr, rank: int) -> tuple[int, ...]:
    shape = node.shape(weight)
    if len(shape) != rank + 2:
        raise node.fail(f"the weight has {len(shape)} dimensions, the data {rank + 2}")
    stated = node.attr("kernel_shape", None)
    kernel = tuple(
        size if size is not None else (stated[axis] if stated else None)
        for axis, size in enumerate(shape[2:])
    )
    if any(size is None for size in kernel):
        raise node.fail("the size of the kernel is not known")
    return tuple(int(size) for size in kernel if size is not None)


def _biased(data: Expr, bias: Expr | None) -> Expr:
    return data if bias is None else relay.nn.bias_add(data, bias, axis=1)


@converter("Conv")
def conv(node: Node, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution over one to three axes."""
    rank = spatial_rank(node, data)
    data, window = window_of(node, data, kernel_size(node, weight, rank))
    made = _CONVOLUTIONS[rank](
        data,
        weight,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=int(node.attr("group", 1)),
        kernel_size=window.kernel,
        data_layout=LAYOUTS[rank],
        kernel_layout=KERNEL_LAYOUTS[rank],
    )
    return _biased(made, bias)


@converter("FusedConv", domain=MICROSOFT_DOMAIN)
def fused_conv(
    node: Node,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    addend: Expr | None = None,
) -> Expr:
    """A convolution, a sum and an activation."""
    made = conv(node, data, weight, bias)
    return fused_activation(node, made if addend is None else made + addend)


@converter("NhwcConv", domain=MICROSOFT_DOMAIN)
def nhwc_conv(node: Node, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution of data and, as some writers have it, a weight whose channels are last."""
    rank = spatial_rank(node, data)
    first = (0, rank + 1, *range(1, rank + 1))
    channels, groups, shape = node.shape(data)[-1], int(node.attr("group", 1)), node.shape(weight)
    if channels is None:
        raise node.fail("the number of channels is not known")
    if shape[-1] == channels // groups and tuple(shape[1:-1]) == tuple(
        node.attr("kernel_shape", shape[1:-1])
    ):
        weight = relay.transpose(weight, first)
    made = conv(node, relay.transpose(data, first), weight, bias)
    return relay.transpose(made, (0, *range(2, rank + 2), 1))


# Transposed


def _transposed_padding(node: Node, data: Expr, kernel: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """The window of a transposed convolution, and what is added after the result."""
    rank = len(kernel)
    strides = attribute_list(node, "strides", rank, 1)
    dilations = attribute_list(node, "dilations", rank, 1)
    more = attribute_list(node, "output_padding", rank, 0)
    mode = node.attr("auto_pad", "NOTSET") or "NOTSET"
    wanted = node.attr("output_shape", None)
    if wanted is None and mode in ("NOTSET", "VALID"):
        pads = [0] * (2 * rank) if mode == "VALID" else node.attr("pads", None) or [0] * (2 * rank)
        window = Window(kernel, strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]))
        return window, more
    sizes = node.static_shape(data)[2:]
    if wanted is None:
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    # Some exporters state batch and channels as well.
    wanted = list(wanted)[-rank:]
    before, after, added = [], [], []
    for axis in range(rank):
        whole = strides[axis] * (sizes[axis] - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = whole - int(wanted[axis])
        half = max(total, 0) // 2
        first = half if mode == "SAME_UPPER" else max(total, 0) - half
        before.append(first)
        after.append(max(total, 0) - first)
        added.append(more[axis] + max(-total, 0))
    return Window(kernel, strides, dilations, tuple(before), tuple(after)), tuple(added)


@converter("ConvTranspose")
def conv_transpose(node: Node, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A transposed convolution over one to three axes."""
    rank = spatial_rank(node, data)
    window, more = _transposed_padding(node, data, kernel_size(node, weight, rank))
    made = _TRANSPOSED[rank](
        data,
        weight,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=int(node.attr("group", 1)),
        kernel_size=window.kernel,
        data_layout=LAYOUTS[rank],
        kernel_layout=_TRANSPOSED_LAYOUTS[rank],
        output_padding=more,
    )
    return _biased(made, bias)


# Deformable


@converter("DeformConv", since=19)
def deform_conv(
    node: Node,
    data: Expr,
    weight: Expr,
    offset: Expr,
    bias: Expr | None = None,
    mask: Expr | None = None,
) -> Expr:
    """A convolution whose taps are moved by offsets and, where there is a mask, weighted by it.

    relay's own deformable convolution repeats the edge of the image where a tap is between it and the outside; ONNX
    has zeros there, as reading by a grid does.
    """
    spatial_rank(node, data, 2)
    kernel = kernel_size(node, weight, node.rank(data) - 2)
    data, window = window_of(node, data, kernel)
    groups, sets = int(node.attr("group", 1)), int(node.attr("offset_group", 1))
    columns = _sampled_taps(node, data, offset, mask, window, sets)
    outputs, inputs = node.static_shape(weight, "the weight")[:2]
    taps = prod(window.kernel)
    made = relay.nn.conv2d(
        columns, relay.reshape(weight, (outputs, inputs, taps, 1)), groups=groups, kernel_size=(taps, 1)
    )
    sizes = node.static_shape(offset, "the offset")
    return _biased(relay.reshape(made, (-1, outputs, *sizes[2:])), bias)


def _sampled_taps(node: Node, data: Expr, offset: Expr, mask: Expr | None, window: Window, sets: int) -> Expr:
    """The value that each tap reads for each output position: (batch, channels, taps, positions)."""
    batch, channels, height, width = node.static_shape(data)
    rows, columns = node.static_shape(offset, "the offset")[2:]
    taps = prod(window.kernel)
    check_constants(node, taps, rows, columns)
    moved = relay.reshape(offset, (batch * sets, taps, 2, rows, columns))
    grid = []
    for axis, size in enumerate((height, width)):
        tap = np.arange(taps) // window.kernel[1] if axis == 0 else np.arange(taps) % window.kernel[1]
        place = np.arange((rows, columns)[axis]) * window.strides[axis] - window.before[axis]
        home = tap[:, None] * window.dilations[axis] + place[None, :]
        home = home[:, :, None] if axis == 0 else home[:, None, :]
        home = np.broadcast_to(home, (taps, rows, columns)).astype("float64")
        pixel = relay.squeeze(part(moved, axis, axis + 1, 2), axis=[2]) + node.constant(home, data)
        # Pixel centres to the coordinates of grid_sample without aligned corners.
        scaled = pixel * node.constant(2.0 / size, data) + node.constant(1.0 / size - 1.0, data)
        grid.append(relay.reshape(scaled, (batch * sets, taps * rows, columns)))
    images = relay.reshape(data, (batch * sets, channels // sets, height, width))
    read = relay.image.grid_sample(
        images, relay.stack([grid[1], grid[0]], axis=1), padding_mode="zeros", align_corners=False
    )
    if mask is not None:
        read = read * relay.reshape(mask, (batch * sets, 1, taps * rows, columns))
    return relay.reshape(read, (batch, channels, taps, rows * columns))


# Causal


@converter("CausalConvWithState", since=27)
def causal_conv_with_state(
    node: Node,
    data: Expr,
    weight: Expr,
    bias: Expr | None = None,
    state: Expr | None = None,
) -> Sequence[Any]:
    """A depthwise convolution over past inputs, which are kept as a state."""
    channels, _, taps = node.static_shape(weight, "the weight")
    if state is not None:
        whole: Expr = relay.concatenate([state, data], axis=2)
    else:
        whole = relay.nn.pad(data, ((0, 0), (0, 0), (taps - 1, 0)), const(0, node.dtype(data)))
    made = _biased(
        relay.nn.conv1d(whole, weight, groups=channels, channels=channels, kernel_size=(taps,)), bias
    )
    activation = node.attr("activation", "none")
    if activation in ("silu", "swish"):
        made = made * relay.sigmoid(made)
    elif activation != "none":
        raise node.fail(f"the activation {activation!r} is not known")
    if not node.wants(1):
        return [made]
    begin = -(taps - 1) if taps > 1 else _END
    return [made, relay.strided_slice(whole, [begin], [_END], [1], axes=[2])]
