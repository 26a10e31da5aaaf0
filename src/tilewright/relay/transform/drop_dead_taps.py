"""DropDeadTaps: a convolution reads no tap of its kernel that lies in the padding wherever the kernel stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.convolution_geometry import walk_of
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


@dataclass(frozen=True)
class _Line:
    """One axis of a convolution: extents of data and result, and how the kernel walks."""

    extent: int
    result: int
    taps: int
    stride: int
    dilation: int
    before: int

    def reads(self, tap: int) -> bool:
        """True if the tap reads an element of the data, for some element of the result."""
        first = tap * self.dilation - self.before
        if first >= 0:
            return first < self.extent
        reached = first + -(first // self.stride) * self.stride
        return reached < self.extent and reached <= first + (self.result - 1) * self.stride

    def live(self) -> tuple[int, int]:
        """The first and the last tap that are read; all where none is, or where the data would have to be cut."""
        read = [tap for tap in range(self.taps) if self.reads(tap)]
        if not read or min(self.padding(read[0], read[-1])) < 0:
            return 0, self.taps - 1
        return read[0], read[-1]

    def padding(self, first: int, last: int) -> tuple[int, int]:
        """The padding with which the taps from first to last give the same result; negative where data are cut."""
        before = self.before - first * self.dilation
        reach = (self.result - 1) * self.stride + (last - first) * self.dilation + 1
        after = reach - before - self.extent
        # Elements that the last step of a stride does not reach are left over, not cut.
        return before, 0 if -self.stride < after < 0 else after


def _without_dead_taps(old: Call, new: Call) -> RelayExpr | None:
    walk = walk_of(old)
    if walk is None:
        return None
    lines = [
        _Line(*axis)
        for axis in zip(
            walk.shape[2:],
            walk.result[2:],
            walk.kernel[2:],
            walk.strides,
            walk.dilation,
            walk.before,
            strict=True,
        )
    ]
    live = [line.live() for line in lines]
    sizes = tuple(last - first + 1 for first, last in live)
    if sizes == walk.kernel[2:]:
        return None
    pads = [line.padding(*one) for line, one in zip(lines, live, strict=True)]
    weight = call(
        "strided_slice",
        new.args[1],
        begin=tuple(first for first, _ in live),
        end=tuple(last + 1 for _, last in live),
        strides=(1,) * len(lines),
        axes=tuple(range(2, 2 + len(lines))),
    )
    attrs: Any = new.attrs
    padding = tuple(pad for pad, _ in pads) + tuple(pad for _, pad in pads)
    return new.replace(args=(new.args[0], weight), attrs=attrs.replace(padding=padding, kernel_size=sizes))


@dataclass
class DropDeadTaps(FunctionPass):
    """A kernel loses the outer taps that only ever read padding: with a dilation of 24, three taps on 14 pixels are
    one. Pyramids of dilated convolutions, as for segmentation, have many of them."""

    name = "DropDeadTaps"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter(dict.fromkeys(_CONVOLUTIONS, _without_dead_taps)), func)
