"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.ops.layers import channels_last, window_padding
from tilewright.relay.frontend.paddle.registry import converter

Pool = Callable[..., Expr]
_WINDOWS: Final[dict[tuple[str, int], Pool]] = {
    ("max", 2): relay.nn.max_pool2d,
    ("avg", 2): relay.nn.avg_pool2d,
    ("max", 3): relay.nn.max_pool3d,
    ("avg", 3): relay.nn.avg_pool3d,
}
_ADAPTIVE: Final[dict[tuple[str, int], Pool]] = {
    ("max", 2): relay.nn.adaptive_max_pool2d,
    ("avg", 2): relay.nn.adaptive_avg_pool2d,
    ("max", 3): relay.nn.adaptive_max_pool3d,
    ("avg", 3): relay.nn.adaptive_avg_pool3d,
}


@converter("pool2d", "pool3d", reads="X KernelTensor")
def pooling(node: PaddleNode, data: Expr, given: Expr | None) -> Expr:
    """The largest or the mean of each window, of the whole image, or of as many windows as are asked for."""
    rank = 3 if node.op_type == "pool3d" else 2
    kind = node.text("pooling_type", "max")
    if kind not in ("max", "avg"):
        raise node.fail(f"pooling_type {kind!r} is not known")
    last = channels_last(node)
    layout = "N" + "DHW"[-rank:] + "C" if last else "NC" + "DHW"[-rank:]
    kernel = node.known("ksize", given)
    space = list(range(1, rank + 1)) if last else list(range(2, rank + 2))
    adaptive = node.flag("adaptive")
    if node.flag("global_pooling") or (adaptive and kernel == [1] * rank):
        reduce = relay.max if kind == "max" else relay.mean
        return reduce(data, axis=space, keepdims=True)
    if adaptive:
        sizes = [
            size if size > 0 else node.static_shape(data)[axis]
            for size, axis in zip(kernel, space, strict=True)
        ]
        return _ADAPTIVE[kind, rank](data, sizes, layout=layout)
    strides = node.integers("strides", [1] * rank)
    shape = node.shape(data)
    padding = window_padding(node, tuple(shape[axis] for axis in space), kernel, strides)
    window = {
        "pool_size": kernel,
        "strides": strides,
        "padding": padding,
        "layout": layout,
        "ceil_mode": node.flag("ceil_mode"),
    }
    if kind == "max":
        return _WINDOWS[kind, rank](data, **window)
    return _WINDOWS[kind, rank](data, **window, count_include_pad=not node.flag("exclusive", True))


@converter("max_pool2d_with_index", "max_pool3d_with_index", writes="Out")
def pooling_with_index(node: PaddleNode, data: Expr) -> Expr:
    """The largest of each window; the places are not given."""
    rank = 3 if "3d" in node.op_type else 2
    kernel = node.integers("ksize")
    if node.flag("global_pooling"):
        return relay.max(data, axis=list(range(2, rank + 2)), keepdims=True)
    if node.flag("adaptive"):
        return _ADAPTIVE["max", rank](data, kernel)
    return _WINDOWS["max", rank](
        data,
        pool_size=kernel,
        strides=node.integers("strides"),
        padding=node.integers("paddings") * 2,
        ceil_mode=node.flag("ceil_mode"),
    )
