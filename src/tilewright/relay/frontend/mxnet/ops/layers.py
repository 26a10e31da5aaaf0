"""Convolutions, fully connected layers, embeddings, upsampling."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter

LAYOUTS: Final = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The order of axes unless a node states another, by the number of axes of space."""
_CONVOLUTIONS: Final[dict[int, Any]] = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
_TRANSPOSED: Final[dict[int, Any]] = {
    1: relay.nn.conv1d_transpose,
    2: relay.nn.conv2d_transpose,
    3: relay.nn.conv3d_transpose,
}
# The letters of a transposed kernel: the data's channels come first, whatever they are called.
_TRANSPOSED_KERNELS: Final = {1: "OIW", 2: "IOHW", 3: "OIDHW"}


def layout_of(node: SymbolNode, data: Expr) -> str:
    """The order of the data's axes."""
    rank = node.rank(data) - 2
    if rank not in LAYOUTS:
        raise node.fail(f"the data have {rank + 2} dimensions; there have to be 3, 4 or 5")
    stated = node.text("layout", "None")
    layout = LAYOUTS[rank] if stated == "None" else stated
    if sorted(layout) != sorted(LAYOUTS[rank]):
        raise node.fail(f"the layout {layout!r} is not one of data with {rank + 2} dimensions")
    return layout


def with_bias(node: SymbolNode, made: Expr, bias: Expr | None, axis: int) -> Expr:
    """A number for each channel added, where there is a bias."""
    return made if bias is None or node.flag("no_bias") else relay.nn.bias_add(made, bias, axis=axis)


@converter("Convolution", "Convolution_v1")
def convolution(node: SymbolNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution. Where the channels of the data are last, those of the kernel are too."""
    layout = layout_of(node, data)
    rank = len(layout) - 2
    channels_last = layout.endswith("C")
    kernel = node.window("kernel", rank, 1)
    if channels_last:
        weight = node.permuted(weight, (*range(1, rank + 1), rank + 1, 0))
    elif layout != LAYOUTS[rank]:
        raise node.fail(f"the layout {layout!r} is not supported")
    made = _CONVOLUTIONS[rank](
        data,
        weight,
        strides=node.window("stride", rank, 1),
        padding=node.window("pad", rank, 0),
        dilation=node.window("dilate", rank, 1),
        groups=node.integer("num_group", 1),
        channels=node.integer("num_filter"),
        kernel_size=kernel,
        data_layout=layout,
        kernel_layout=layout[1:-1] + "IO" if channels_last else "OI" + layout[2:],
    )
    return with_bias(node, made, bias, layout.index("C"))


@converter("Deconvolution")
def deconvolution(node: SymbolNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A transposed convolution; a target shape wins over padding."""
    layout = layout_of(node, data)
    rank = len(layout) - 2
    if layout != LAYOUTS[rank]:
        raise node.fail(f"the layout {layout!r} is not supported")
    kernel, strides = node.window("kernel", rank, 1), node.window("stride", rank, 1)
    dilations = node.window("dilate", rank, 1)
    padding, more = node.window("pad", rank, 0), node.window("adj", rank, 0)
    target = node.numbers("target_shape", ())
    if any(target):
        target = node.window("target_shape", rank, 0)
        reach = [
            stride * (size - 1) + dilation * (taps - 1) + 1 - wanted
            for stride, size, dilation, taps, wanted in zip(
                strides, node.static_shape(data)[2:], dilations, kernel, target, strict=True
            )
        ]
        if min(reach) < 0:
            raise node.fail(f"the target shape {target} is larger than what the layer computes")
        padding, more = tuple((one + 1) // 2 for one in reach), tuple(one % 2 for one in reach)
    groups = node.integer("num_group", 1)
    made = _TRANSPOSED[rank](
        data,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilations,
        groups=groups,
        channels=node.integer("num_filter"),
        kernel_size=kernel,
        data_layout=layout,
        kernel_layout=_TRANSPOSED_KERNELS[rank],
        output_padding=more,
    )
    # MXNet's transposed convolutions have no bias unless they are told to.
    return made if bias is None or node.flag("no_bias", True) else relay.nn.bias_add(made, bias, axis=1)


@converter("FullyConnected")
def fully_connected(node: SymbolNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """The product of rows and a weight (outputs, inputs)."""
    units = node.integer("num_hidden")
    shape = node.shape(data)
    if node.flag("flatten", True):
        return with_bias(node, relay.nn.dense(relay.nn.batch_flatten(data), weight, units=units), bias, 1)
    if len(shape) == 2:
        return with_bias(node, relay.nn.dense(data, weight, units=units), bias, 1)
    lead = node.static_shape(data)[:-1]
    rows = relay.reshape(data, (prod(lead), shape[-1]))
    made = with_bias(node, relay.nn.dense(rows, weight, units=units), bias, 1)
    return relay.reshape(made, (*lead, units))


@converter("Embedding", "_contrib_SparseEmbedding")
def embedding(node: SymbolNode, data: Expr, weight: Expr) -> Expr:
    """Rows of a table; places outside it read the nearest row, as in MXNet."""
    return relay.take(weight, relay.cast(data, "int32"), axis=0, mode="clip")


@converter("UpSampling")
def upsampling(node: SymbolNode, data: Expr, *more: Expr) -> Expr:
    """Images enlarged by repeating pixels."""
    if node.text("sample_type", "nearest") != "nearest":
        raise node.fail("only sample_type 'nearest' is supported; bilinear upsampling is a Deconvolution")
    if more:
        raise node.fail("only one input is supported")
    scale = node.integer("scale")
    return relay.nn.upsampling(data, scale_h=scale, scale_w=scale)


@converter("_contrib_BilinearResize2D")
def bilinear_resize(node: SymbolNode, data: Expr) -> Expr:
    """Images in another size, by linear interpolation between the corners."""
    if node.text("mode", "size") not in ("size", "None"):
        raise node.fail(f"the mode {node.text('mode', '')!r} is not supported, only 'size'")
    sizes = []
    for name, axis in (("height", 2), ("width", 3)):
        factor = node.number(f"scale_{name}", 0.0) if node.text(f"scale_{name}", "None") != "None" else 0.0
        sizes.append(int(node.static_shape(data)[axis] * factor) if factor else node.integer(name, 1))
    corners = "align_corners" if node.flag("align_corners", True) else "half_pixel"
    return relay.image.resize2d(data, sizes, method="linear", coordinate_transformation_mode=corners)
