"""SplitDilation: rewrites a dilated convolution as a batch of dense ones, where Winograd makes those faster.

With a dilation of d, an output pixel depends only on every d-th input pixel. So the image is split into d x d images,
of every d-th pixel of every d-th row, and each is convolved without dilation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.convolution_geometry import walk_of
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    Constants,
    OperatorRewriter,
    rewritten,
    tensor_of,
)
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.schedule.cpu.winograd_model import Convolution, choose_winograd_tile
from tilewright.target import Target


@dataclass(frozen=True)
class _Phases:
    """The shape of the image, the dilation, and the channels of the result."""

    shape: Constants
    steps: Constants
    outputs: int

    @property
    def extents(self) -> Constants:
        """Rows and columns of one of the split images."""
        return tuple(-(-extent // step) for extent, step in zip(self.shape[2:], self.steps, strict=True))

    def apart(self, data: RelayExpr, dtype: str) -> RelayExpr:
        """The split images, as a batch."""
        batch, channels, height, width = self.shape
        (down, across), (rows, columns) = self.steps, self.extents
        more = rows * down - height, columns * across - width
        if any(more):
            widths = ((0, 0), (0, 0), (0, more[0]), (0, more[1]))
            data = call("nn.pad", data, const(0.0, dtype), pad_width=widths)
        split = call("reshape", data, newshape=(batch, channels, rows, down, columns, across))
        transposed = call("transpose", split, axes=(0, 3, 5, 1, 2, 4))
        return call("reshape", transposed, newshape=(batch * down * across, channels, rows, columns))

    def together(self, pictures: RelayExpr) -> RelayExpr:
        """The image that is reassembled from the split images."""
        batch, _, height, width = self.shape
        (down, across), (rows, columns), channels = self.steps, self.extents, self.outputs
        split = call("reshape", pictures, newshape=(batch, down, across, channels, rows, columns))
        transposed = call("transpose", split, axes=(0, 3, 4, 1, 5, 2))
        whole = call("reshape", transposed, newshape=(batch, channels, rows * down, columns * across))
        if (rows * down, columns * across) == (height, width):
            return whole
        return call("strided_slice", whole, begin=(0, 0), end=(height, width), strides=(1, 1), axes=(2, 3))


def _phases(old: Call, attrs: Any) -> _Phases | None:
    """The phases of a 3x3 convolution with a result of the same size as its data; None for others."""
    walk = walk_of(old)
    if walk is None or walk.kernel[2:] != (3, 3) or attrs.groups != 1:
        return None
    if walk.strides != (1, 1) or walk.dilation == (1, 1):
        return None
    if not walk.before == walk.after == walk.dilation:
        return None
    return _Phases(walk.shape, walk.dilation, walk.kernel[0])


def _split(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    found = _phases(old, attrs)
    dtype = str(tensor_of(old).dtype)
    if found is None or dtype != "float32" or str(tensor_of(old.args[0]).dtype) != dtype:
        return None
    cpu = current_cpu()
    batch, inputs, height, width = found.shape
    dilated = Convolution(batch, inputs, found.outputs, height, width, cpu.lanes(32))
    rows, columns = found.extents
    plain = replace(dilated, batch=batch * prod(found.steps), height=rows, width=columns)
    largest = PassContext.current().get("relay.winograd.largest_tile")
    if choose_winograd_tile(cpu, plain, largest, instead_of=dilated) is None:
        return None
    made = new.replace(
        args=(found.apart(new.args[0], dtype), new.args[1]),
        attrs=attrs.replace(dilation=(1, 1), padding=(1, 1, 1, 1)),
    )
    return found.together(made)


@dataclass
class SplitDilation(FunctionPass):
    """Rewrites dilated convolutions that Winograd makes faster, on CPUs."""

    name = "SplitDilation"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is None or "cpu" not in target.keys:
            return func
        return rewritten(OperatorRewriter({"nn.conv2d": _split}), func)
