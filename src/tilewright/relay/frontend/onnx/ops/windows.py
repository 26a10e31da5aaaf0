"""Sliding windows over the spatial axes: the attributes that convolutions and poolings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
KERNEL_LAYOUTS = {1: "OIW", 2: "OIHW", 3: "OIDHW"}


@dataclass(frozen=True)
class Window:
    """The taps of a window, the steps between windows and between taps, and the padding around the data."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel)

    @property
    def padding(self) -> tuple[int, ...]:
        """The padding as relay has it: before all axes, then after all."""
        return (*self.before, *self.after)

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements a window spans, along each axis."""
        return tuple((taps - 1) * step + 1 for taps, step in zip(self.kernel, self.dilations, strict=True))

    def counts(self, sizes: tuple[int, ...], ceil_mode: bool = False) -> tuple[int, ...]:
        """How many windows there are along axes of these sizes. With ``ceil_mode`` a last window may reach beyond the
        padding, unless it would begin there."""
        found = []
        for size, reach, stride, before, after in zip(
            sizes, self.reach, self.strides, self.before, self.after, strict=True
        ):
            room = size + before + after - reach
            count = -(-room // stride) + 1 if ceil_mode else room // stride + 1
            if ceil_mode and (count - 1) * stride >= size + before:
                count -= 1
            found.append(count)
        return tuple(found)


def spatial_rank(node: Node, data: Expr, largest: int = 3) -> int:
    """The number of spatial axes of data of N, C and space; relay has operators for up to three."""
    rank = node.rank(data) - 2
    if not 1 <= rank <= largest:
        raise node.fail(f"data of {rank + 2} dimensions are not supported: 3 to {largest + 2} are")
    return rank


def attribute_list(node: Node, name: str, rank: int, default: int) -> tuple[int, ...]:
    """An attribute of one integer for each spatial axis."""
    found = tuple(int(item) for item in node.attr(name, None) or [default] * rank)
    if len(found) != rank:
        raise node.fail(f"{name} has {len(found)} values for {rank} axes")
    return found


def window_of(node: Node, data: Expr, kernel: tuple[int, ...], fill: float = 0.0) -> tuple[Expr, Window]:
    """The window that a node's attributes describe, and the data that it slides over.

    Where ``auto_pad`` requests padding by a size that is not known now, the data come back padded with ``fill`` by the
    program.
    """
    rank = len(kernel)
    strides = attribute_list(node, "strides", rank, 1)
    dilations = attribute_list(node, "dilations", rank, 1)
    if any(item < 1 for item in (*strides, *dilations, *kernel)):
        raise node.fail("kernel, strides and dilations are at least 1")
    mode = node.attr("auto_pad", "NOTSET") or "NOTSET"
    nothing = (0,) * rank
    if mode == "VALID":
        return data, Window(kernel, strides, dilations, nothing, nothing)
    if mode == "NOTSET":
        pads = [int(item) for item in node.attr("pads", None) or [0] * (2 * rank)]
        if len(pads) != 2 * rank:
            raise node.fail(f"pads has {len(pads)} values for {rank} axes")
        return data, Window(kernel, strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.fail(f"auto_pad {mode!r} is not known")
    window = Window(kernel, strides, dilations, nothing, nothing)
    sizes = node.shape(data)[2:]
    if any(size is None and stride > 1 for size, stride in zip(sizes, strides, strict=True)):
        return _padded_by_program(node, data, window, mode == "SAME_UPPER", fill), window
    before, after = [], []
    for size, span, stride in zip(sizes, window.reach, strides, strict=True):
        total = max(span - 1 if size is None else (-(-size // stride) - 1) * stride + span - size, 0)
        first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        before.append(first)
        after.append(total - first)
    return data, Window(kernel, strides, dilations, tuple(before), tuple(after))


def _padded_by_program(node: Node, data: Expr, window: Window, upper: bool, fill: float) -> Expr:
    sizes = relay.strided_slice(relay.shape_of(data, "int64"), [2], [2 + window.rank])
    strides, reach = node.constants(window.strides), node.constants(window.reach)
    one, two = const(1, "int64"), const(2, "int64")
    counts = relay.floor_divide(sizes + strides - one, strides)
    total = relay.maximum((counts - one) * strides + reach - sizes, const(0, "int64"))
    half = relay.floor_divide(total, two)
    first = half if upper else total - half
    widths = relay.stack([first, total - first], axis=1)
    widths = relay.concatenate([const(np.zeros((2, 2), "int64")), widths], axis=0)
    return relay.nn.pad(data, widths, const(fill, node.dtype(data)))


def operators(prefix: str, suffix: str = "") -> dict[int, Any]:
    """The operators of relay.nn for one, two and three spatial axes."""
    return {rank: getattr(relay.nn, f"{prefix}{rank}d{suffix}") for rank in (1, 2, 3)}
