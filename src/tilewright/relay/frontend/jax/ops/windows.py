"""Reductions of windows that move over a tensor: pooling and running totals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.elementwise import combined
from tilewright.relay.frontend.jax.ops.reduction import is_identity, reducer
from tilewright.relay.frontend.jax.ops.slicing import padded
from tilewright.relay.frontend.jax.registry import converter


@dataclass(frozen=True)
class Window:
    """Of each dimension: the window's size, its steps, the distance of its elements, and what is added around."""

    sizes: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]

    @property
    def moved(self) -> list[int]:
        """The dimensions along which the window is more than one element, or steps."""
        everything = zip(self.sizes, self.strides, self.before, self.after, strict=True)
        return [
            axis
            for axis, (size, step, low, high) in enumerate(everything)
            if (size, step, low, high) != (1, 1, 0, 0)
        ]


@converter("reduce_window")
def reduce_window(node: JaxNode, *operands: Expr) -> Sequence[Expr]:
    """A reduction of each window of one tensor or of several together."""
    count = len(operands) // 2
    data, starts = list(operands[:count]), list(operands[count:])
    rank = node.rank(data[0])
    ones = [1] * rank
    pads = node.list_attr("padding", [0] * (2 * rank))
    base = node.list_attr("base_dilations", ones)
    window = Window(
        node.list_attr("window_dimensions"),
        node.list_attr("window_strides", ones),
        node.list_attr("window_dilations", ones),
        pads[::2],
        pads[1::2],
    )
    name = reducer(node.regions[0]) if count == 1 else None
    if base == ones and name is not None and is_identity(node, name, starts[0]):
        running = _running(node, name, data[0], window)
        if running is not None:
            return [running]
        pooled = _pooled(node, name, data[0], window)
        if pooled is not None:
            return [pooled]
    return _by_offsets(node, data, starts, window, [step - 1 for step in base])


def _running(node: JaxNode, name: str, data: Expr, window: Window) -> Expr | None:
    """Totals of all elements up to each one, or from each one on; None for other windows."""
    if len(window.moved) != 1 or node.dtype(data) == "bool":
        return None
    (axis,) = window.moved
    extent = node.static_shape(data)[axis]
    pads = (window.before[axis], window.after[axis])
    if window.sizes[axis] != extent or window.strides[axis] != 1 or window.dilations[axis] != 1:
        return None
    if pads not in ((extent - 1, 0), (0, extent - 1)) or extent == 1:
        return None
    if pads[1]:
        data = relay.reverse(data, axis)
    made: Expr
    if name in ("add", "multiply"):
        made = (relay.cumsum if name == "add" else relay.cumprod)(data, axis, node.dtype(data))
    else:
        made, apart = data, 1
        while apart < extent:  # each round doubles how far back an element has looked
            earlier = relay.strided_slice(made, [0], [extent - apart], [1], [axis])
            later = relay.strided_slice(made, [apart], [extent], [1], [axis])
            head = relay.strided_slice(made, [0], [apart], [1], [axis])
            made = relay.concatenate([head, combined(node, name, earlier, later)], axis)
            apart *= 2
    return relay.reverse(made, axis) if pads[1] else made


def _pooled(node: JaxNode, name: str, data: Expr, window: Window) -> Expr | None:
    """Pooling of images, where the window moves over two neighbouring dimensions; None for other windows."""
    moved = window.moved
    if name not in ("maximum", "add") or not node.dtype(data).startswith("float"):
        return None
    if node.rank(data) != 4 or moved not in ([1, 2], [2, 3], [1], [2], [3]):
        return None
    space = (1, 2) if 3 not in moved else (2, 3)
    if min(window.before) < 0 or min(window.after) < 0:
        return None
    sizes, strides, dilations = (
        [of[axis] for axis in space] for of in (window.sizes, window.strides, window.dilations)
    )
    padding = [*(window.before[axis] for axis in space), *(window.after[axis] for axis in space)]
    if any(
        pad >= (size - 1) * apart + 1
        for pad, size, apart in zip(padding, sizes * 2, dilations * 2, strict=True)
    ):
        return None
    layout = "NHWC" if space == (1, 2) else "NCHW"
    if name == "maximum":
        return relay.nn.max_pool2d(data, sizes, strides, dilations, padding, layout)
    mean = relay.nn.avg_pool2d(data, sizes, strides, dilations, padding, layout, count_include_pad=True)
    return relay.multiply(mean, node.constant(math.prod(sizes), data))


def _by_offsets(
    node: JaxNode, data: list[Expr], starts: list[Expr], window: Window, between: list[int]
) -> list[Expr]:
    """Any window, by any block: one strided piece for each element of the window, combined one after another."""
    if math.prod(window.sizes) > 1024:
        raise node.fail(f"the window {window.sizes} has too many elements for a reduction of this kind")
    shape = node.result_shape()
    whole = [
        padded(node, one, start, window.before, window.after, between)
        for one, start in zip(data, starts, strict=True)
    ]
    made = [node.broadcast(start, shape) for start in starts]
    for offsets in itertools.product(*map(range, window.sizes)):
        begin = [place * apart for place, apart in zip(offsets, window.dilations, strict=True)]
        end = [
            low + (extent - 1) * step + 1
            for low, extent, step in zip(begin, shape, window.strides, strict=True)
        ]
        pieces = [relay.strided_slice(one, begin, end, window.strides) for one in whole]
        made = node.graph.inside(node.regions[0], [*made, *pieces])
    return made
