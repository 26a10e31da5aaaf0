"""PadChannels: zeros fill the last vector of channels where a convolution would leave much of it empty.

Convolutions whose channels fill no whole vectors (27, 58, 151, 255) are computed in parts of vectors, down to single
numbers. With weights of zero for further channels, every vector is full, and the next convolution, with weights of
zero for them too, reads the padding as it is. See ``channel_spaces`` for where that is worth it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims
from tilewright.relay.target.cpu.channel_spaces import (
    VECTORS,
    ChannelSpace,
    ChannelSpaces,
    channel_axis,
    channel_spaces,
    is_depthwise,
)
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten, tensor_of
from tilewright.support.span import span_scope
from tilewright.target import Target


class _Pad(OperatorRewriter):
    """Remembers of every image of a padded space the padded one."""

    def __init__(self, spaces: ChannelSpaces) -> None:
        super().__init__({})
        self.spaces = spaces
        self.wide: dict[RelayExpr, RelayExpr] = {}
        self.entering: dict[tuple[RelayExpr, ChannelSpace], RelayExpr] = {}

    def visit_call(self, call: Call) -> RelayExpr:
        """The call without padding, as a slice of the padded one where there is one."""
        space = self.spaces.padded_space(call)
        reads_padding = (
            isinstance(call.op, Op)
            and call.op.name in ("nn.conv2d", "nn.pad")
            and call in self.spaces.of
            and self.spaces.padded_space(call.args[0]) is not None
        )
        if space is None and not reads_padding:
            return super().visit_call(call)
        with span_scope(call.span):
            made = self._padded(call, space)
            if space is None:
                return made
            self.wide[call] = made
            return self._narrow(made, space)

    def _padded(self, old: Call, space: ChannelSpace | None) -> RelayExpr:
        assert isinstance(old.op, Op)
        if old.op.name == "nn.conv2d":
            return self._convolution(old, space)
        result = self.spaces.of[old].root()
        if old.op.name == "concatenate":
            assert isinstance(old.args[0], Tuple)
            fields = [self._operand(one) for one in old.args[0].fields]
            return old.replace(args=(Tuple(fields),))
        source = self.spaces.of.get(old.args[0])
        if old.op.name == "nn.pad" and source is not None and source.root() is not result:
            return self._further_channels(old, source.root(), result)
        arguments = [self._beside(old, position, result) for position in range(len(old.args))]
        return old.replace(args=tuple(arguments))

    def _operand(self, expr: RelayExpr) -> RelayExpr:
        """An image in the form that its own space has."""
        plain: RelayExpr = self.visit(expr)
        return self.wide.get(expr, plain)

    def _convolution(self, old: Call, space: ChannelSpace | None) -> RelayExpr:
        attrs: Any = old.attrs
        assert isinstance(old.args[1], Constant)
        weight = old.args[1].data.numpy()
        source = self.spaces.padded_space(old.args[0])
        if space is not None:
            weight = self._spread(weight, 0, space)
            attrs = attrs.replace(channels=weight.shape[0])
        if is_depthwise(old):
            attrs = attrs.replace(groups=weight.shape[0])
        elif source is not None:
            weight = self._spread(weight, 1, source)
        return old.replace(args=(self._operand(old.args[0]), const(weight, str(weight.dtype))), attrs=attrs)

    def _further_channels(self, old: Call, source: ChannelSpace, space: ChannelSpace) -> RelayExpr:
        """Zeros as further channels: behind the padding, unless parts stand in the way."""
        data = self._operand(old.args[0])
        if len(source.leaves()) > 1 or len(space.leaves()) > 1:
            return self._widened(old.map_children(self.visit), space)
        more = self._width(space) - self._width(source)
        return old.replace(args=(data, old.args[1]), attrs=_pad_attributes(old, more)) if more else data

    def _beside(self, old: Call, position: int, space: ChannelSpace) -> RelayExpr:
        """An operand of an operator that computes the channels of a padded space."""
        expr = old.args[position]
        assert isinstance(old.op, Op)
        if isinstance(expr, Constant):
            is_vector = old.op.name in VECTORS and position == 1
            axis = 0 if is_vector else channel_axis(expr, space.channels)
            if axis is None or old.op.name == "nn.pad":
                return expr
            filler = 1.0 if old.op.name == "divide" and position == 1 else 0.0
            values = self._spread(expr.data.numpy(), axis, space, filler)
            return const(values, str(values.dtype))
        plain: RelayExpr = self.visit(expr)
        own = self.spaces.of.get(expr)
        if own is not None and own.root() is space:
            return self.wide[expr]
        if dims(tensor_of(expr))[1] != space.channels:
            return plain
        if (expr, space) not in self.entering:
            self.entering[expr, space] = self._widened(plain, space)
        return self.entering[expr, space]

    # Padding and cutting it off

    def _width(self, space: ChannelSpace) -> int:
        return space.width(self.spaces.lanes)

    def _places(self, space: ChannelSpace) -> Any:
        """Where each channel is among the padded ones."""
        lanes = self.spaces.lanes
        found, start = [], 0
        for leaf in space.leaves():
            found.append(np.arange(start, start + leaf))
            start += -(-leaf // lanes) * lanes
        return np.concatenate(found)

    def _spread(self, values: Any, axis: int, space: ChannelSpace, filler: float = 0.0) -> Any:
        """Constants with padding along an axis of channels."""
        shape = list(values.shape)
        shape[axis] = self._width(space)
        made = np.full(shape, filler, values.dtype)
        made[(slice(None),) * axis + (self._places(space),)] = values
        return made

    def _widened(self, plain: RelayExpr, space: ChannelSpace) -> RelayExpr:
        """An image with padding added."""
        dtype = str(tensor_of(plain).dtype)
        lanes, leaves = self.spaces.lanes, space.leaves()
        made: list[RelayExpr] = []
        start = 0
        for leaf in leaves:
            part = plain if len(leaves) == 1 else _slice(plain, start, start + leaf)
            start += leaf
            width = ((0, 0), (0, -leaf % lanes), (0, 0), (0, 0))
            made.append(call("nn.pad", part, const(0.0, dtype), pad_width=width) if leaf % lanes else part)
        return _concatenated(made)

    def _narrow(self, wide: RelayExpr, space: ChannelSpace) -> RelayExpr:
        """A padded image without its padding."""
        lanes = self.spaces.lanes
        made: list[RelayExpr] = []
        start = 0
        for leaf in space.leaves():
            made.append(_slice(wide, start, start + leaf))
            start += -(-leaf // lanes) * lanes
        return _concatenated(made)


def _slice(expr: RelayExpr, first: int, end: int) -> RelayExpr:
    """Channels of an image."""
    return call("strided_slice", expr, begin=(first,), end=(end,), strides=(1,), axes=(1,))


def _pad_attributes(old: Call, more: int) -> Any:
    attrs: Any = old.attrs
    return attrs.replace(pad_width=((0, 0), (0, more), (0, 0), (0, 0)))


def _concatenated(images: list[RelayExpr]) -> RelayExpr:
    return images[0] if len(images) == 1 else call("concatenate", Tuple(images), axis=1)


@dataclass
class PadChannels(FunctionPass):
    """Pads channels to whole vectors where convolutions are faster that way, on CPUs."""

    name = "PadChannels"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is None or "cpu" not in target.keys:
            return func
        spaces = channel_spaces(func)
        return rewritten(_Pad(spaces), func) if spaces.padded else func
