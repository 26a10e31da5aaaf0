"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.ops.layers import layout_of
from tilewright.relay.frontend.mxnet.registry import converter

_LARGEST: Final[dict[int, Callable[..., Expr]]] = {
    1: relay.nn.max_pool1d,
    2: relay.nn.max_pool2d,
    3: relay.nn.max_pool3d,
}
_AVERAGE: Final[dict[int, Callable[..., Expr]]] = {
    1: relay.nn.avg_pool1d,
    2: relay.nn.avg_pool2d,
    3: relay.nn.avg_pool3d,
}
_WHOLE: Final[dict[str, Callable[..., Expr]]] = {"max": relay.max, "avg": relay.mean, "sum": relay.sum}


@converter("Pooling", "Pooling_v1")
def pooling(node: SymbolNode, data: Expr) -> Expr:
    """The largest, the mean or the sum of each window, or of the whole image."""
    layout = layout_of(node, data)
    rank = len(layout) - 2
    kind = node.text("pool_type", "max")
    if kind not in _WHOLE:
        raise node.fail(f"pool_type {kind!r} is not supported")
    space = [axis for axis, letter in enumerate(layout) if letter not in "NC"]
    if node.flag("global_pool"):
        return _WHOLE[kind](data, axis=space, keepdims=True)
    convention = node.text("pooling_convention", "valid")
    if convention not in ("valid", "full"):
        raise node.fail(f"pooling_convention {convention!r} is not supported")
    kernel, padding = node.window("kernel", rank, 1), node.window("pad", rank, 0)
    window: dict[str, Any] = {
        "pool_size": kernel,
        "strides": node.window("stride", rank, 1),
        "padding": padding,
        "layout": layout,
        "ceil_mode": convention == "full",
    }
    if kind == "max":
        return _LARGEST[rank](data, **window)
    counted = kind == "sum" or node.flag("count_include_pad", True)
    if counted and convention == "full":
        if kind == "sum":
            raise node.fail("sums with pooling_convention 'full' are not supported")
        # Padding counts as zeros, but not what the last window reaches beyond it.
        widths = [(0, 0)] * len(layout)
        for axis, width in zip(space, padding, strict=True):
            widths[axis] = (width, width)
        data = relay.nn.pad(data, widths, node.constant(0, data))
        return _AVERAGE[rank](data, **{**window, "padding": (0,) * rank}, count_include_pad=False)
    made = _AVERAGE[rank](data, **window, count_include_pad=counted)
    return relay.multiply(made, node.constant(prod(kernel), data)) if kind == "sum" else made


@converter("_contrib_AdaptiveAvgPooling2D")
def adaptive_average(node: SymbolNode, data: Expr) -> Expr:
    """Means of as many windows as are asked for."""
    sizes = node.numbers("output_size", ()) or (1,)
    return relay.nn.adaptive_avg_pool2d(data, sizes * 2 if len(sizes) == 1 else sizes)
