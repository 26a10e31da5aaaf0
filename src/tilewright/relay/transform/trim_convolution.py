"""TrimConvolution: a convolution of whose result only a part is read computes only that part.

Causal layers are often written as a convolution that is padded at both ends and a slice that drops the end. Less
padding gives the slice itself, next to the bias and activation that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.transform.lib.convolution_geometry import walk_of
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    Constants,
    OperatorRewriter,
    constant_shape,
    is_call,
    rewritten,
    uses_of,
)

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_PATTERNS = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
_SPATIAL = 2
"""The first axis along which a convolution walks."""

Cuts = dict[int, tuple[int, int]]
"""By axis, how many elements a slice drops in front and at the end."""

Steps = list[tuple[Call, int]]
"""Elementwise operators, and which argument of each is sliced in place of its result."""


def _cuts(piece: Call) -> Cuts | None:
    """What a slice drops; None if it steps, or its shapes are not constant."""
    attrs: Any = piece.attrs
    shape, result = constant_shape(piece.args[0]), constant_shape(piece)
    if shape is None or result is None or len(piece.args) > 1 or attrs.begin is None:
        return None
    places = range(len(attrs.begin)) if attrs.axes is None else [axis % len(shape) for axis in attrs.axes]
    found: Cuts = {}
    for place, axis in enumerate(places):
        extent, left = shape[axis], result[axis]
        stepped = attrs.slice_mode == "end" and attrs.strides is not None and place < len(attrs.strides)
        step = attrs.strides[place] if stepped else 1
        if extent == left and step > 0:
            continue
        if step != 1:
            return None
        begin = attrs.begin[place] or 0
        front = min(max(begin + extent if begin < 0 else begin, 0), extent)
        found[axis] = front, extent - front - left
    return found or None


def _carrier(step: Call, cuts: Cuts) -> int | None:
    """The argument of an elementwise operator that is sliced in place of its result; the others do not vary there."""
    attrs: Any = step.attrs
    shapes = [constant_shape(argument) for argument in step.args]
    result = constant_shape(step)
    if result is None or None in shapes or not isinstance(step.op, Op):
        return None
    if step.op.get_attr("TOpPattern") not in _PATTERNS or any(
        hasattr(attrs, name) for name in ("shape", "newshape")
    ):
        return None
    whole = [place for place, shape in enumerate(shapes) if shape == result]
    if len(whole) != 1:
        return None
    for place, shape in enumerate(shapes):
        assert shape is not None
        if place != whole[0] and not _is_same_along(cuts, shape, attrs, len(result)):
            return None
    return whole[0]


def _is_same_along(cuts: Cuts, shape: Constants, attrs: Any, rank: int) -> bool:
    """True if an operand has one value for all elements along the cut axes."""
    if len(shape) == 1 and hasattr(attrs, "axis"):
        return attrs.axis % rank not in cuts
    return all(axis < rank - len(shape) or shape[axis - rank + len(shape)] == 1 for axis in cuts)


def _trimmed(old: Call, new: Call, cuts: Cuts) -> RelayExpr | None:
    """The convolution with less padding, if that drops what is cut."""
    walk = walk_of(old)
    if walk is None or min(cuts) < _SPATIAL:
        return None
    pads = list(zip(walk.before, walk.after, strict=True))
    for axis, (front, back) in cuts.items():
        place = axis - _SPATIAL
        before = pads[place][0] - front * walk.strides[place]
        last = (walk.result[axis] - front - back - 1) * walk.strides[place]
        reach = last + (walk.kernel[axis] - 1) * walk.dilation[place] + 1
        after = reach - before - walk.shape[axis]
        if before < 0 or after <= -walk.strides[place]:
            return None
        # Elements that the last step of a stride does not reach are left over.
        pads[place] = before, max(after, 0)
    attrs: Any = new.attrs
    padding = tuple(one for one, _ in pads) + tuple(other for _, other in pads)
    return new.replace(attrs=attrs.replace(padding=padding))


def _rebuilt(made: RelayExpr, steps: Steps) -> RelayExpr:
    """The elementwise operators, the last one first in ``steps``, on another argument."""
    for step, place in reversed(steps):
        made = Call(step.op, (*step.args[:place], made, *step.args[place + 1 :]), step.attrs, span=step.span)
    return made


class _Trim(OperatorRewriter):
    """Moves slices above elementwise operators, into the convolution."""

    def __init__(self, uses: dict[RelayExpr, int]) -> None:
        super().__init__({"strided_slice": self._slice})
        self.uses = uses

    def _slice(self, old: Call, new: Call) -> RelayExpr | None:
        cuts = _cuts(old)
        steps: Steps = []
        before, after = old.args[0], new.args[0]
        while cuts is not None and isinstance(before, Call) and isinstance(after, Call):
            if self.uses[before] > 1 or before.op is not after.op:
                return None
            if is_call(before, *_CONVOLUTIONS):
                made = _trimmed(before, after, cuts)
                return None if made is None else _rebuilt(made, steps)
            carrier = _carrier(before, cuts)
            if carrier is None:
                return None
            steps.append((after, carrier))
            before, after = before.args[carrier], after.args[carrier]
        return None


@dataclass
class TrimConvolution(FunctionPass):
    """A slice of a convolution that drops what only padding made becomes a convolution with less padding."""

    name = "TrimConvolution"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(_Trim(uses_of(func.body)), func)
