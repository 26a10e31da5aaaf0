"""Pooling."""

from __future__ import annotations

from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.ops.segments import neutral
from tilewright.relay.frontend.tensorflow.ops.windows import fitted_window, image_layout, spatial, window_of
from tilewright.relay.frontend.tensorflow.registry import converter

_MAXIMUM: Final = {1: relay.nn.max_pool1d, 2: relay.nn.max_pool2d, 3: relay.nn.max_pool3d}
_AVERAGE: Final = {1: relay.nn.avg_pool1d, 2: relay.nn.avg_pool2d, 3: relay.nn.avg_pool3d}


def max_pooled(node: GraphNode, data: Expr, layout: str) -> Expr:
    """The greatest element of each window, whose size is the attribute ``ksize``."""
    kernel = spatial(layout, node.attr("ksize"))
    lowest = float(neutral(node.dtype(data), "max"))
    data, window = fitted_window(node, data, layout, kernel, lowest)
    return _MAXIMUM[len(layout) - 2](
        data, pool_size=window.kernel, strides=window.strides, padding=window.padding, layout=layout
    )


def average_pooled(node: GraphNode, data: Expr, layout: str) -> Expr:
    """The mean of the elements that each window has inside the image."""
    window = window_of(node, data, layout, spatial(layout, node.attr("ksize")))
    made: Any = _AVERAGE[len(layout) - 2](
        data,
        pool_size=window.kernel,
        strides=window.strides,
        padding=window.padding,
        layout=layout,
        count_include_pad=False,
    )
    return made  # type: ignore[no-any-return]


@converter("MaxPool")
def max_pool(node: GraphNode, data: Expr) -> Expr:
    """The greatest element of each window of an image."""
    return max_pooled(node, data, image_layout(node))


@converter("MaxPoolV2")
def max_pool_v2(node: GraphNode, data: Expr, kernel: Expr, strides: Expr) -> Expr:
    """The greatest element of each window, whose size and steps are inputs."""
    node.attributes["ksize"] = node.ints(kernel, "the kernel")
    node.attributes["strides"] = node.ints(strides, "the strides")
    return max_pooled(node, data, image_layout(node))


@converter("AvgPool")
def average_pool(node: GraphNode, data: Expr) -> Expr:
    """The mean of each window of an image."""
    return average_pooled(node, data, image_layout(node))


@converter("MaxPool3D")
def max_pool3d(node: GraphNode, data: Expr) -> Expr:
    """The greatest element of each window of a volume."""
    return max_pooled(node, data, str(node.attr("data_format", "NDHWC")))


@converter("AvgPool3D")
def average_pool3d(node: GraphNode, data: Expr) -> Expr:
    """The mean of each window of a volume."""
    return average_pooled(node, data, str(node.attr("data_format", "NDHWC")))
