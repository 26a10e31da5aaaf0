"""Windows that slide over images: how they are padded, whatever the order of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common import ShapeNeeded
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import Size, size_of, vector, with_known

SPACE = {1: "W", 2: "HW", 3: "DHW"}
"""The letters of the spatial axes, by their number."""


@dataclass(frozen=True)
class Window:
    """Sizes, steps, distances between taps, and padding before and after, along each spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def padding(self) -> tuple[int, ...]:
        """As Relay's operators take it."""
        return self.before + self.after

    @property
    def is_padded(self) -> bool:
        """True if there is any padding."""
        return any(self.padding)


def image_layout(node: GraphNode) -> str:
    """The order of the axes of images, as the node states it."""
    return str(node.attr("data_format", "NHWC"))


def axes_of_space(layout: str) -> list[int]:
    """Where the spatial axes are."""
    return [place for place, letter in enumerate(layout) if letter in "DHW"]


def spatial(layout: str, given: Sequence[int]) -> tuple[int, ...]:
    """The spatial part of an attribute with a number for each axis."""
    return tuple(int(given[axis]) for axis in axes_of_space(layout))


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Padding with which the result has ``size / stride`` elements, rounded up: what is odd goes after."""
    reach = (kernel - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def window_of(node: GraphNode, data: Expr, layout: str, kernel: Sequence[int]) -> Window:
    """The window that the node's attributes ``strides``, ``dilations`` and ``padding`` describe."""
    everywhere = [1] * len(layout)
    strides = spatial(layout, node.attr("strides", None) or everywhere)
    dilations = spatial(layout, node.attr("dilations", None) or node.attr("rates", None) or everywhere)
    mode = str(node.attr("padding", "VALID"))
    count = len(kernel)
    if mode == "VALID":
        pads = [(0, 0)] * count
    elif mode == "EXPLICIT":
        given = [int(one) for one in node.attr("explicit_paddings")]
        pads = [(given[2 * axis], given[2 * axis + 1]) for axis in axes_of_space(layout)]
    elif mode == "SAME":
        pads = []
        for axis, size, stride, apart in zip(axes_of_space(layout), kernel, strides, dilations, strict=True):
            extent = node.shape(data)[axis]
            if extent is None and stride != 1:
                raise ShapeNeeded(
                    f"{node.where}: dimension {axis} of the input has to be known for padding SAME with a stride: "
                    "fix it with shape="
                )
            pads.append(
                same_padding(extent or size, size, stride, apart) if stride != 1 else _half(size, apart)
            )
    else:
        raise node.fail(f"the padding {mode!r} is not known")
    before, after = zip(*pads, strict=True)
    return Window(tuple(int(one) for one in kernel), strides, dilations, tuple(before), tuple(after))


def fitted_window(
    node: GraphNode, data: Expr, layout: str, kernel: Sequence[int], fill: float = 0.0
) -> tuple[Expr, Window]:
    """The data and the window on them. Padding SAME that depends on sizes which only the program knows is part of the
    data."""
    axes = axes_of_space(layout)
    strides = spatial(layout, node.attr("strides", None) or [1] * len(layout))
    is_open = any(
        node.shape(data)[axis] is None and step != 1 for axis, step in zip(axes, strides, strict=True)
    )
    if str(node.attr("padding", "VALID")) != "SAME" or not is_open:
        return data, window_of(node, data, layout, kernel)
    given = node.attr("dilations", None) or node.attr("rates", None) or [1] * len(layout)
    dilations = spatial(layout, given)
    widths: list[tuple[Size, Size]] = [(0, 0)] * len(layout)
    for axis, size, stride, apart in zip(axes, kernel, strides, dilations, strict=True):
        extent = size_of(node, data, axis)
        if isinstance(extent, int):
            widths[axis] = same_padding(extent, size, stride, apart)
        else:
            widths[axis] = _computed_padding(extent, size, stride, apart)
    amounts = relay.reshape(vector([amount for pair in widths for amount in pair]), (len(layout), 2))
    extents = [
        extent + before + after
        if extent is not None and isinstance(before, int) and isinstance(after, int)
        else None
        for extent, (before, after) in zip(node.shape(data), widths, strict=True)
    ]
    padded = with_known(node, relay.nn.pad(data, amounts, node.constant(fill, data)), extents)
    nothing = (0,) * len(kernel)
    return padded, Window(tuple(int(one) for one in kernel), strides, dilations, nothing, nothing)


def _computed_padding(extent: Expr, kernel: int, stride: int, dilation: int) -> tuple[Expr, Expr]:
    """As ``same_padding``, of a size that the program computes."""
    one, step = const(1, "int64"), const(stride, "int64")
    rounds = relay.floor_divide(relay.subtract(extent, one), step)
    reach = relay.add(relay.multiply(rounds, step), const((kernel - 1) * dilation + 1, "int64"))
    total = relay.maximum(relay.subtract(reach, extent), const(0, "int64"))
    before = relay.floor_divide(total, const(2, "int64"))
    return before, relay.subtract(total, before)


def _half(kernel: int, dilation: int) -> tuple[int, int]:
    """Padding that keeps the size, with steps of one."""
    total = (kernel - 1) * dilation
    return total // 2, total - total // 2
