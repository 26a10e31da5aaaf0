"""Which images of a function have the same channels, and which of them are worth padding to whole vectors.

Images that are connected by operators on single channels (elementwise, depthwise, pooling) share one *space*: the same
channels in the same order. A concatenation has a space of its own, made of those of its operands. In a padded space,
zeros fill the last vector of each part: the convolutions that make its images get weights of zero for them, and those
that read them multiply them by zero. Everything else reads the channels without the padding, which has to be cut off
first. Spaces that are connected by concatenations are padded together, if the vectors that this fills are worth more
cycles than the padding costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, Tuple
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import dims
from tilewright.relay.target.cpu.choose_blocks import TRANSFORM_CYCLES
from tilewright.relay.target.cpu.layout import DIRECT_EFFICIENCY
from tilewright.relay.target.cpu.typical_shapes import assuming, typical_shape_of, typical_shapes
from tilewright.relay.transform.lib.rewriting import is_call, scalar_value, tensor_of
from tilewright.schedule.cpu.layouts import WORTH_BLOCKING, channel_block
from tilewright.schedule.cpu.loops import vector_fill
from tilewright.schedule.cpu.machine import current_cpu, lanes_of

POOLS: Final = (
    "nn.max_pool2d",
    "nn.avg_pool2d",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_max_pool2d",
    "nn.upsampling",
    "image.resize2d",
)
REDUCTIONS: Final = ("mean", "sum", "max", "min")
VECTORS: Final = ("nn.bias_add", "nn.prelu")
ZERO_AT_ZERO: Final = ("nn.relu", "nn.leaky_relu", "tanh", "abs", "negative", "erf")
FINITE_AT_ZERO: Final = ("sigmoid", "exp", "clip")
"""Elementwise operators whose result for zero is zero, and others whose result is finite."""
BINARY: Final = ("add", "subtract", "maximum", "minimum", "multiply", "divide")


@dataclass(eq=False)
class ChannelSpace:
    """The channels of connected images: those of its parts, one after the other, if it has any."""

    channels: int
    parts: tuple[ChannelSpace, ...] | None = None
    joined: ChannelSpace | None = None

    def root(self) -> ChannelSpace:
        """The space that this one was merged into."""
        found = self
        while found.joined is not None:
            found = found.joined
        return found

    def leaves(self) -> list[int]:
        """The channels of the smallest parts, in order."""
        found: list[int] = []
        stack = [self]
        while stack:
            space = stack.pop().root()
            if space.parts is None:
                found.append(space.channels)
            else:
                stack.extend(reversed(space.parts))
        return found

    def width(self, lanes: int) -> int:
        """The number of channels with the last vector of each part filled up."""
        return sum(-(-leaf // lanes) * lanes for leaf in self.leaves())


def _pairs(one: ChannelSpace, other: ChannelSpace) -> list[tuple[ChannelSpace, ChannelSpace]] | None:
    """The spaces that become one if these do, parts included; None if they have different parts."""
    found: list[tuple[ChannelSpace, ChannelSpace]] = []
    pending = [(one, other)]
    while pending:
        first, second = (space.root() for space in pending.pop())
        if first is second:
            continue
        if first.channels != second.channels:
            return None
        found.append((first, second))
        if first.parts is not None and second.parts is not None:
            if len(first.parts) != len(second.parts):
                return None
            pending.extend(zip(first.parts, second.parts, strict=True))
    return found


def _join(spaces: Sequence[ChannelSpace]) -> bool:
    """Makes these spaces one; False if they have different parts."""
    for other in spaces[1:]:
        pairs = _pairs(spaces[0], other)
        if pairs is None:
            return False
        for one, another in pairs:
            first, second = one.root(), another.root()
            if first is second:
                continue
            if first.parts is None:
                first, second = second, first
            second.joined = first
    return True


@dataclass(frozen=True)
class _Convolution:
    """A convolution: the spaces of its data (None if unknown, or the result's) and its result, the pixels of that, and
    the products that make each element of it."""

    source: ChannelSpace | None
    result: ChannelSpace
    pixels: int
    products: int


@dataclass
class ChannelSpaces:
    """The spaces of the images of a function, and of those whether the padding of an image would be zero."""

    lanes: int
    of: dict[RelayExpr, ChannelSpace] = field(default_factory=dict)
    zero: dict[RelayExpr, bool] = field(default_factory=dict)
    convolutions: list[_Convolution] = field(default_factory=list)
    ties: list[tuple[ChannelSpace, ChannelSpace]] = field(default_factory=list)
    moved: list[tuple[ChannelSpace, int]] = field(default_factory=list)
    padded: set[ChannelSpace] = field(default_factory=set)

    def padded_space(self, expr: RelayExpr) -> ChannelSpace | None:
        """The space of an image, if that is padded."""
        found = self.of.get(expr)
        root = None if found is None else found.root()
        return root if root in self.padded else None

    # Survey

    def visit(self, expr: Any) -> None:
        """Add one expression; what it reads has been visited before."""
        if isinstance(expr, Call) and isinstance(expr.op, Op) and self._call(expr, expr.op.name):
            return
        if not isinstance(expr, Tuple):
            reads = [one for child in expr.children() for one in _fields(child)]
            self.read_plain(one for one in reads if isinstance(one, RelayExpr))

    def read_plain(self, tensors: Iterable[RelayExpr]) -> None:
        """Record that images are read without padding."""
        for tensor in tensors:
            if tensor in self.of:
                self.moved.append((self.of[tensor], prod(typical_shape_of(tensor) or ())))

    def read_result(self, tensors: Iterable[RelayExpr]) -> None:
        """The same for the results of the function: cutting the padding off is part of the layout transform that blocks
        of channels need there anyway."""
        self.read_plain(one for one in tensors if one in self.of and not self._is_blocked(self.of[one]))

    def _is_blocked(self, space: ChannelSpace) -> bool:
        fill = vector_fill(channel_block(space.channels, self.lanes), self.lanes)
        return fill >= WORTH_BLOCKING and space.root().parts is None

    def _call(self, call: Call, name: str) -> bool:
        """Find the space of a call; False for one that reads its images without padding."""
        shape = typical_shape_of(call)
        if shape is None or str(tensor_of(call).dtype) != "float32":
            return False
        if name == "nn.conv2d":
            return self._convolution(call, shape)
        if name == "concatenate":
            return self._concatenation(call)
        if name == "nn.pad":
            return self._pad(call)
        if not is_by_channel(call, shape):
            return False
        images = [one for one in call.args if _channels(one) == shape[1] and not isinstance(one, Constant)]
        return self._shared(call, images) and self._note_zero(call, name, shape[1])

    def _convolution(self, call: Call, shape: tuple[int, ...]) -> bool:
        depthwise = is_depthwise(call)
        if not depthwise and not is_dense_convolution(call):
            return False
        if depthwise and not self._shared(call, [call.args[0]]):
            return False
        if not depthwise:
            self.of[call] = ChannelSpace(shape[1])
        source = None if depthwise else self.of.get(call.args[0])
        products = prod(typical_shape_of(call.args[1]) or ()) // shape[1]
        pixels = shape[0] * shape[2] * shape[3]
        self.convolutions.append(_Convolution(source, self.of[call], pixels, products))
        self.zero[call] = True
        return True

    def _concatenation(self, call: Call) -> bool:
        attrs: Any = call.attrs
        operands = list(_fields(call.args[0]))
        if attrs.axis not in (1, -3) or not all(one in self.of for one in operands):
            return False
        parts = tuple(self.of[one] for one in operands)
        self.of[call] = made = ChannelSpace(sum(part.channels for part in parts), parts)
        self.ties += [(made, part) for part in parts]
        self.zero[call] = all(self.zero[one] for one in operands)
        return True

    def _pad(self, call: Call) -> bool:
        """Padding around the pixels, or zeros as further channels."""
        attrs: Any = call.attrs
        source = self.of.get(call.args[0])
        if source is None or attrs.pad_mode != "constant":
            return False
        before, after = attrs.pad_width[1]
        if tuple(attrs.pad_width[0]) != (0, 0) or before:
            return False
        if not after:
            self.of[call] = source
            self.zero[call] = self.zero[call.args[0]] and scalar_value(call.args[1]) == 0
            return True
        around = [width for pair in attrs.pad_width[2:] for width in pair]
        if after < 0 or any(around) or scalar_value(call.args[1]) != 0 or not self.zero[call.args[0]]:
            return False
        self.of[call] = made = ChannelSpace(source.channels + after)
        self.ties.append((made, source))
        self.zero[call] = True
        return True

    def _shared(self, call: Call, images: Sequence[RelayExpr]) -> bool:
        """Give a call the space of the images that it reads, if they can share one."""
        known = [self.of[one] for one in images if one in self.of]
        if not known or not _join(known):
            return False
        self.of[call] = known[0]
        entering = [one for one in images if one not in self.of]
        self.moved += [(known[0], prod(typical_shape_of(one) or ())) for one in entering]
        return True

    def _note_zero(self, call: Call, name: str, channels: int) -> bool:
        attrs: Any = call.attrs
        zeros = [self._is_zero(one, channels) for one in call.args]
        if name == "multiply":
            zero = any(zeros)
        elif name == "clip":
            zero = zeros[0] and attrs.a_min <= 0 <= attrs.a_max
        elif name in BINARY and name != "divide":
            zero = all(zeros)
        else:
            zero = zeros[0] and name not in FINITE_AT_ZERO
        self.zero[call] = zero
        return True

    def _is_zero(self, expr: RelayExpr, channels: int) -> bool:
        """True if an operand is zero where the channels of the result are padding."""
        if isinstance(expr, Constant):
            return channel_axis(expr, channels) is not None or scalar_value(expr) == 0
        return _channels(expr) == channels and self.zero.get(expr, True)

    # Decision

    def decide(self) -> None:
        """Find the spaces that are worth padding."""
        cpu = current_cpu()
        rate = self.lanes * max(cpu.fma_units, 1) * DIRECT_EFFICIENCY
        gains: dict[ChannelSpace, float] = {space.root(): 0.0 for space in self.of.values()}
        for one in self.convolutions:
            result, width = one.result.root(), one.result.width(self.lanes)
            gains[result] -= TRANSFORM_CYCLES * one.pixels * (width - result.channels)
            if one.pixels == 1:
                continue  # the weights of a single pixel are read in memory order, whatever the channels
            products = one.pixels * one.products
            gains[result] += products * (self._lanes_in_use(result.channels) - width) / rate
            if one.source is not None:
                source = one.source.root()
                gains[source] -= products * (source.width(self.lanes) / source.channels - 1) * width / rate
        for space, elements in self.moved:
            gains[space.root()] -= TRANSFORM_CYCLES * elements
        for cluster in self._clusters(gains):
            wider = [space for space in cluster if space.width(self.lanes) != space.channels]
            if wider and sum(gains[space] for space in cluster) > 0:
                self.padded.update(wider)

    def _lanes_in_use(self, channels: int) -> float:
        """The lanes of all vector operations on these channels without padding."""
        fill = vector_fill(channel_block(channels, self.lanes), self.lanes)
        return channels / max(fill, WORTH_BLOCKING)

    def _clusters(self, spaces: Iterable[ChannelSpace]) -> list[list[ChannelSpace]]:
        """The spaces that are padded together or not at all."""
        near: dict[ChannelSpace, list[ChannelSpace]] = {space: [] for space in spaces}
        for one, other in self.ties:
            near[one.root()].append(other.root())
            near[other.root()].append(one.root())
        found: list[list[ChannelSpace]] = []
        seen: set[ChannelSpace] = set()
        for space in near:
            if space in seen:
                continue
            seen.add(space)
            cluster = [space]
            for member in cluster:
                more = [one for one in dict.fromkeys(near[member]) if one not in seen]
                seen.update(more)
                cluster += more
            found.append(cluster)
        return found


def _fields(expr: Any) -> Sequence[Any]:
    return expr.fields if isinstance(expr, Tuple) else (expr,)


def _channels(expr: RelayExpr) -> int | None:
    shape = typical_shape_of(expr)
    return None if shape is None else shape[1]


def channel_axis(operand: RelayExpr, channels: int) -> int | None:
    """The axis of a constant operand along which its elements belong to the channels; None if there is none."""
    shape = dims(tensor_of(operand))
    return len(shape) - 3 if channels > 1 and len(shape) >= 3 and shape[-3] == channels else None


def _is_plain(call: Call) -> bool:
    attrs: Any = call.attrs
    return (
        isinstance(call.args[1], Constant)
        and attrs.data_layout == "NCHW"
        and attrs.kernel_layout == "OIHW"
        and attrs.out_layout in ("", "NCHW")
        and tensor_of(call.args[0]).dtype == tensor_of(call).dtype
    )


def is_dense_convolution(call: Call) -> bool:
    """True for a convolution of NCHW without groups, with a constant weight."""
    attrs: Any = call.attrs
    return _is_plain(call) and attrs.groups == 1


def is_depthwise(call: Call) -> bool:
    """True for a depthwise convolution of NCHW with one output per channel and a constant weight."""
    attrs: Any = call.attrs
    channels = _channels(call)
    return (
        _is_plain(call)
        and attrs.groups == channels == _channels(call.args[0])
        and attrs.groups > 1
        and dims(tensor_of(call.args[1]))[:2] == (channels, 1)
    )


def is_by_channel(call: Call, shape: Sequence[int]) -> bool:
    """True for an operator that computes each channel from the same one of its images, and finite numbers from
    zeros."""
    attrs: Any = call.attrs
    if is_call(call, *ZERO_AT_ZERO, *FINITE_AT_ZERO):
        return True
    if is_call(call, *POOLS):
        return bool(attrs.layout == "NCHW")
    if is_call(call, *REDUCTIONS):
        axes = attrs.axis if isinstance(attrs.axis, (tuple, list)) else (attrs.axis,)
        return (
            attrs.keepdims and not attrs.exclude and None not in axes and {int(a) % 4 for a in axes} == {2, 3}
        )
    if is_call(call, *VECTORS):
        return attrs.axis == 1 and isinstance(call.args[1], Constant)
    if not is_call(call, *BINARY):
        return False
    if is_call(call, "divide") and not isinstance(call.args[1], Constant):
        return False
    return all(isinstance(one, Constant) or _channels(one) in (1, shape[1]) for one in call.args)


def channel_spaces(function: Function) -> ChannelSpaces:
    """The spaces of a function, and which of them are worth padding on the current target."""
    found = ChannelSpaces(lanes_of(current_cpu(), "float32"))
    with assuming(typical_shapes(function)):
        for expr in post_order(function.body):
            found.visit(expr)
        found.read_result(_fields(function.body))
        found.decide()
    return found
