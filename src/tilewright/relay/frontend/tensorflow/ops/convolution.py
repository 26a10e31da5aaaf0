"""Convolutions: plain, depthwise, transposed, dilations of grey images."""

from __future__ import annotations

from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.ops.windows import (
    SPACE,
    Window,
    axes_of_space,
    fitted_window,
    image_layout,
    same_padding,
    spatial,
    window_of,
)
from tilewright.relay.frontend.tensorflow.registry import converter

_PLAIN: Final = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
_TRANSPOSED: Final = {
    1: relay.nn.conv1d_transpose,
    2: relay.nn.conv2d_transpose,
    3: relay.nn.conv3d_transpose,
}


def channels_last(layout: str) -> bool:
    """True if the channels are the last axis."""
    return layout.endswith("C")


def kernel_for(node: GraphNode, weight: Expr, layout: str) -> tuple[Expr, str]:
    """A kernel whose axes are space, inputs, outputs in the order that suits the data, and that order."""
    rank = len(layout) - 2
    space = SPACE[rank]
    if channels_last(layout):
        return weight, f"{space}IO"
    return node.permuted(weight, [rank + 1, rank, *range(rank)]), f"OI{space}"


def convolved(node: GraphNode, data: Expr, weight: Expr, window: Window, layout: str) -> Expr:
    """A convolution; the kernel's axes are space, inputs, outputs. Fewer inputs than the data have mean groups."""
    rank = len(layout) - 2
    inputs, outputs = node.static_shape(weight, "the kernel")[-2:]
    channels = node.shape(data)[layout.index("C")]
    if channels is None or channels % inputs:
        raise node.fail(f"the data have {channels} channels, the kernel takes {inputs}")
    kernel, kernel_layout = kernel_for(node, weight, layout)
    return _PLAIN[rank](
        data,
        kernel,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=channels // inputs,
        channels=outputs,
        kernel_size=window.kernel,
        data_layout=layout,
        kernel_layout=kernel_layout,
    )


def depthwise_kernel(node: GraphNode, weight: Expr, layout: str) -> tuple[Expr, str]:
    """A kernel (height, width, channels, multiplier) as one with a single input per group."""
    height, width, channels, multiplier = node.static_shape(weight, "the kernel")
    flat = node.reshaped_weight(weight, (height, width, channels * multiplier, 1))
    if channels_last(layout):
        return flat, "HWOI"
    return node.permuted(flat, (2, 3, 0, 1)), "OIHW"


@converter("Conv2D")
def conv2d(node: GraphNode, data: Expr, weight: Expr) -> Expr:
    """A convolution of images."""
    layout = image_layout(node)
    data, window = fitted_window(node, data, layout, node.static_shape(weight, "the kernel")[:2])
    return convolved(node, data, weight, window, layout)


@converter("Conv3D")
def conv3d(node: GraphNode, data: Expr, weight: Expr) -> Expr:
    """A convolution of volumes."""
    layout = str(node.attr("data_format", "NDHWC"))
    data, window = fitted_window(node, data, layout, node.static_shape(weight, "the kernel")[:3])
    return convolved(node, data, weight, window, layout)


@converter("DepthwiseConv2dNative")
def depthwise_conv2d(node: GraphNode, data: Expr, weight: Expr) -> Expr:
    """A convolution of each channel by kernels of its own."""
    layout = image_layout(node)
    shape = node.static_shape(weight, "the kernel")
    data, window = fitted_window(node, data, layout, shape[:2])
    kernel, kernel_layout = depthwise_kernel(node, weight, layout)
    return relay.nn.conv2d(
        data,
        kernel,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=shape[2],
        channels=shape[2] * shape[3],
        kernel_size=window.kernel,
        data_layout=layout,
        kernel_layout=kernel_layout,
    )


# Transposed


def transposed_window(
    node: GraphNode, data: Expr, layout: str, kernel: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[Window, tuple[int, ...]]:
    """The window of a transposed convolution whose result has these spatial sizes, and what is added after it."""
    everywhere = [1] * len(layout)
    strides = spatial(layout, node.attr("strides", None) or everywhere)
    dilations = spatial(layout, node.attr("dilations", None) or everywhere)
    mode = str(node.attr("padding", "VALID"))
    given = [int(one) for one in node.attr("explicit_paddings", None) or [0] * (2 * len(layout))]
    before, after, more = [], [], []
    sizes = node.static_shape(data)
    for place, axis in enumerate(axes_of_space(layout)):
        size, step, apart, target = kernel[place], strides[place], dilations[place], wanted[place]
        pads = (0, 0)
        if mode == "SAME":
            pads = same_padding(target, size, step, apart)
        elif mode == "EXPLICIT":
            pads = (given[2 * axis], given[2 * axis + 1])
        whole = (sizes[axis] - 1) * step + (size - 1) * apart + 1 - sum(pads)
        before.append(pads[0])
        after.append(pads[1] + max(whole - target, 0))
        more.append(max(target - whole, 0))
    return Window(kernel, strides, dilations, tuple(before), tuple(after)), tuple(more)


def transposed(
    node: GraphNode, data: Expr, weight: Expr, window: Window, more: tuple[int, ...], layout: str
) -> Expr:
    """A transposed convolution; the kernel's axes are space, outputs, inputs.

    What is added after the result comes as padding of the result where it is more than a transposed convolution takes.
    """
    rank = len(layout) - 2
    outputs = node.static_shape(weight, "the kernel")[-2]
    first = [0, layout.index("C"), *axes_of_space(layout)]
    images = data if first == sorted(first) else relay.transpose(data, first)
    kernel = node.permuted(weight, [rank + 1, rank, *range(rank)])
    fits = all(extra < step for extra, step in zip(more, window.strides, strict=True))
    made = _TRANSPOSED[rank](
        images,
        kernel,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        channels=outputs,
        kernel_size=window.kernel,
        data_layout=f"NC{SPACE[rank]}",
        kernel_layout={1: "OIW", 2: "IOHW", 3: "OIDHW"}[rank],
        output_padding=more if fits else (0,) * rank,
    )
    if not fits:
        made = relay.nn.pad(made, [(0, 0), (0, 0), *((0, extra) for extra in more)], node.constant(0, made))
    back = [first.index(axis) for axis in range(rank + 2)]
    return made if back == sorted(back) else relay.transpose(made, back)


def _backprop(node: GraphNode, sizes: Expr, weight: Expr, data: Expr, layout: str) -> Expr:
    wanted = node.elements(sizes, "the sizes")
    axes = axes_of_space(layout)
    if len(wanted) == len(axes):
        target: list[Any] = list(wanted)
    else:
        target = [wanted[axis] for axis in axes]
    if not all(isinstance(one, int) for one in target):
        raise node.needs_value(sizes, "the sizes of the result")
    kernel = node.static_shape(weight, "the kernel")[: len(axes)]
    window, more = transposed_window(node, data, layout, kernel, tuple(target))
    return transposed(node, data, weight, window, more, layout)


@converter("Conv2DBackpropInput")
def conv2d_backprop_input(node: GraphNode, sizes: Expr, weight: Expr, data: Expr) -> Expr:
    """A transposed convolution of images."""
    return _backprop(node, sizes, weight, data, image_layout(node))


@converter("Conv3DBackpropInputV2")
def conv3d_backprop_input(node: GraphNode, sizes: Expr, weight: Expr, data: Expr) -> Expr:
    """A transposed convolution of volumes."""
    return _backprop(node, sizes, weight, data, str(node.attr("data_format", "NDHWC")))


@converter("Dilation2D")
def dilation2d(node: GraphNode, data: Expr, weight: Expr) -> Expr:
    """The greatest sum of a window's elements and a kernel's."""
    window = window_of(node, data, "NHWC", node.static_shape(weight, "the kernel")[:2])
    return relay.image.dilation2d(
        data,
        weight,
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        data_layout="NHWC",
        kernel_layout="HWI",
    )
