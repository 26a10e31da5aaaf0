"""ConvolveImages: convolutions of lines and of volumes become convolutions of images.

Two-dimensional convolutions have blocked and Winograd kernels. A line is an image of one row. A volume is a batch of
images, its frames; a kernel of several frames becomes one with as many times the channels, with the frames that it
reads concatenated, or, if those would take too much memory, a sum over its frames. A kernel of one pixel of several
frames sees the volume as images with a row for each frame: as one, whose rows have all pixels of a frame, or as several
of some pixels each, which fit into a cache. A transposed convolution whose kernel does not overlap from frame to frame
gives all frames that one becomes as channels. What follows is computed on the images as well, if it is elementwise or
one of ``image_operators``, so that no layout transforms are needed between convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.target.cpu.image_operators import LINE, ON_IMAGES, OTHER_OPERANDS
from tilewright.relay.transform.lib.convolution_geometry import Walk, walk_of
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    Constants,
    OperatorRewriter,
    Rule,
    constant_shape,
    is_call,
    rewritten,
    tensor_of,
)
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.support.dtype import DataType
from tilewright.target import Target

_CONVOLUTIONS = ("nn.conv1d", "nn.conv3d")
_VIEWS = ("reshape", "squeeze")
_PATTERNS = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
LARGEST_STACK = 64 << 20
"""The most bytes of concatenated frames: larger volumes are not replicated for each frame of the kernel."""
_FRAMES_FIRST = (0, 2, 1, 3, 4)
"""The permutation of a volume's axes that puts frames before channels, and its inverse."""


def _as_images(expr: RelayExpr, shape: Constants) -> RelayExpr:
    """A line as an image of one row, a volume as a batch of its frames."""
    if len(shape) == LINE:
        return call("reshape", expr, newshape=(*shape[:2], 1, shape[2]))
    batch, channels, depth, height, width = shape
    transposed = call("transpose", expr, axes=_FRAMES_FIRST)
    return call("reshape", transposed, newshape=(batch * depth, channels, height, width))


def _from_images(images: RelayExpr, shape: Constants) -> RelayExpr:
    """The inverse of the above."""
    if len(shape) == LINE:
        return call("reshape", images, newshape=shape)
    batch, channels, depth, height, width = shape
    apart = call("reshape", images, newshape=(batch, depth, channels, height, width))
    return call("transpose", apart, axes=_FRAMES_FIRST)


def _frames(images: RelayExpr, walk: Walk, dtype: str) -> list[RelayExpr]:
    """For each frame of the kernel, the frames of the data that it is multiplied with, one for each of the result."""
    batch, channels, depth, height, width = walk.shape
    taps, step, stride = walk.kernel[2], walk.dilation[0], walk.strides[0]
    around = walk.before[0], walk.after[0]
    if (taps, stride, around) == (1, 1, (0, 0)):
        return [images]
    # One volume keeps the shape of a batch of images, whose channels may lie in blocks.
    axis = 0 if batch == 1 else 1
    if axis:
        images = call("reshape", images, newshape=(batch, depth, channels, height, width))
    if any(around):
        widths = [(0, 0)] * axis + [around] + [(0, 0)] * 3
        images = call("nn.pad", images, const(0.0, dtype), pad_width=tuple(widths))
    if taps > 1:
        # What the frames are made of is computed once, not for each frame of the kernel.
        images = call("annotation.stop_fusion", images)
    reach = (walk.result[2] - 1) * stride + 1
    found: list[RelayExpr] = [
        call(
            "strided_slice",
            images,
            begin=(tap * step,),
            end=(tap * step + reach,),
            strides=(stride,),
            axes=(axis,),
        )
        for tap in range(taps)
    ]
    if not axis:
        return found
    shape = (batch * walk.result[2], channels, height, width)
    return [call("reshape", one, newshape=shape) for one in found]


def _in_plane(values: Constants, of_a_line: int) -> Constants:
    """Of a value for each axis, those of rows and columns."""
    return (of_a_line, *values)[-2:]


def _convolved(images: RelayExpr, weight: RelayExpr, walk: Walk, attrs: Any) -> RelayExpr:
    """The convolution of images with the rows and columns of the kernel."""
    return call(
        "nn.conv2d",
        images,
        weight,
        strides=_in_plane(walk.strides, 1),
        padding=_in_plane(walk.before, 0) + _in_plane(walk.after, 0),
        dilation=_in_plane(walk.dilation, 1),
        groups=attrs.groups,
        channels=walk.kernel[0],
        kernel_size=_in_plane(walk.kernel[2:], 1),
        out_dtype=attrs.out_dtype,
    )


def _convolved_volume(images: RelayExpr, weight: RelayExpr, walk: Walk, attrs: Any, dtype: str) -> RelayExpr:
    """The convolution of the frames of a volume."""
    outputs, inputs, depth, *taps = walk.kernel
    frames = _frames(images, walk, dtype)
    size = DataType(dtype).bits // 8 * walk.shape[0] * walk.result[2] * prod(walk.shape[3:]) * inputs * depth
    if depth == 1 or size <= LARGEST_STACK:
        beside = frames[0] if depth == 1 else call("concatenate", Tuple(frames), axis=1)
        transposed = call("transpose", weight, axes=_FRAMES_FIRST)
        flat = call("reshape", transposed, newshape=(outputs, depth * inputs, *taps))
        return _convolved(beside, flat, walk, attrs)
    total: RelayExpr | None = None
    for tap, frame in enumerate(frames):
        part = call("strided_slice", weight, begin=(tap,), end=(tap + 1,), strides=(1,), axes=(2,))
        part = call("reshape", part, newshape=(outputs, inputs, *taps))
        made = _convolved(frame, part, walk, attrs)
        total = made if total is None else call("add", made, total)
    assert total is not None
    return total


def _is_along_frames(walk: Walk) -> bool:
    """True if every pixel of the result is made of the same pixel of several frames."""
    planes = (walk.kernel[3:], walk.strides[1:], walk.before[1:], walk.after[1:])
    return walk.kernel[2] > 1 and planes == ((1, 1), (1, 1), (0, 0), (0, 0))


def _parts(walk: Walk, dtype: str) -> int:
    """The images that a volume becomes whose frames are rows: the fewest, of whole rows of the frames, that a second
    cache holds."""
    _, channels, depth, height, width = walk.shape
    of_a_row = DataType(dtype).bits // 8 * channels * depth * width
    fitting = max(current_cpu().l2_bytes // of_a_row, 1)
    return min(parts for parts in range(1, height + 1) if height % parts == 0 and height // parts <= fitting)


def _convolved_along_frames(rows: RelayExpr, weight: RelayExpr, walk: Walk, attrs: Any) -> RelayExpr:
    """The convolution of images whose rows are the frames of a volume."""
    outputs, inputs, depth = walk.kernel[:3]
    return call(
        "nn.conv2d",
        rows,
        call("reshape", weight, newshape=(outputs, inputs, depth, 1)),
        strides=(walk.strides[0], 1),
        padding=(walk.before[0], 0, walk.after[0], 0),
        dilation=(walk.dilation[0], 1),
        groups=attrs.groups,
        channels=outputs,
        kernel_size=(depth, 1),
        out_dtype=attrs.out_dtype,
    )


class _ToImages(OperatorRewriter):
    """Remembers of every rewritten tensor the images that it was made from."""

    def __init__(self) -> None:
        super().__init__({})
        self.images: dict[RelayExpr, RelayExpr] = {}

    def rule_of(self, op: Op) -> Rule | None:
        """Convolutions, and what may follow them."""
        if op.name in _CONVOLUTIONS:
            return self._convolution
        if op.name == "nn.conv3d_transpose":
            return self._transposed_convolution
        if op.name in ON_IMAGES:
            return self._within_images
        if op.name in _VIEWS:
            return self._line
        return self._elementwise if op.get_attr("TOpPattern") in _PATTERNS else None

    def _convolution(self, old: Call, new: Call) -> RelayExpr | None:
        attrs: Any = new.attrs
        walk = walk_of(old)
        dtype = str(tensor_of(old.args[0]).dtype)
        if walk is None or not dtype.startswith("float"):
            return None
        outputs, inputs, *taps = walk.kernel
        if len(taps) > 1 and _is_along_frames(walk):
            parts = _parts(walk, dtype)
            rows = self._frames_as_rows(new.args[0], walk.shape, parts)
            made = _convolved_along_frames(rows, new.args[1], walk, attrs)
            frames = call("nn.contrib_rows_to_frames", made, height=walk.shape[3], parts=parts)
            return self._remember(frames, walk.result)
        images = self.images.get(new.args[0]) or _as_images(new.args[0], walk.shape)
        if len(taps) == 1:
            weight = call("reshape", new.args[1], newshape=(outputs, inputs, 1, *taps))
            made = _convolved(images, weight, walk, attrs)
        elif taps[0] > 1 and attrs.groups > 1:
            return None
        else:
            made = _convolved_volume(images, new.args[1], walk, attrs, dtype)
        return self._remember(made, walk.result)

    def _transposed_convolution(self, old: Call, new: Call) -> RelayExpr | None:
        attrs: Any = new.attrs
        walk = walk_of(old)
        dtype = str(tensor_of(old.args[0]).dtype)
        if walk is None or not dtype.startswith("float") or attrs.groups != 1:
            return None
        inputs, outputs, frames, *taps = walk.kernel
        batch, _, depth, _, _ = walk.shape
        if walk.dilation != (1, 1, 1) or walk.result[2] != depth * frames or walk.strides[0] != frames:
            return None
        if walk.before[0] or walk.after[0]:
            return None
        images = self.images.get(new.args[0]) or _as_images(new.args[0], walk.shape)
        weight = call("transpose", new.args[1], axes=_FRAMES_FIRST)
        made = call(
            "nn.conv2d_transpose",
            images,
            call("reshape", weight, newshape=(inputs, frames * outputs, *taps)),
            strides=walk.strides[1:],
            padding=walk.before[1:] + walk.after[1:],
            output_padding=tuple(attrs.output_padding)[1:],
            channels=frames * outputs,
            kernel_size=tuple(taps),
            out_dtype=attrs.out_dtype,
        )
        shape = (batch * walk.result[2], outputs, *walk.result[3:])
        return self._remember(call("reshape", made, newshape=shape), walk.result)

    def _frames_as_rows(self, volume: RelayExpr, shape: Constants, parts: int) -> RelayExpr:
        """A volume as images with a row for each of its frames."""
        images = self.images.get(volume)
        if images is None and parts == 1:
            return call("reshape", volume, newshape=(*shape[:3], shape[3] * shape[4]))
        if isinstance(images, Call) and is_call(images, "nn.contrib_rows_to_frames"):
            attrs: Any = images.attrs
            if attrs.parts == parts:
                return images.args[0]
        images = images or _as_images(volume, shape)
        return call("nn.contrib_frames_to_rows", images, frames=shape[2], parts=parts)

    def _remember(self, images: RelayExpr, shape: Constants) -> RelayExpr:
        made = _from_images(images, shape)
        self.images[made] = images
        return made

    def _within_images(self, old: Call, new: Call) -> RelayExpr | None:
        """An operator of ``ON_IMAGES`` on the images of its operands, where at least one was made from images."""
        operands, before = _image_operands(new), _image_operands(old)
        if not any(operand in self.images for operand in operands):
            return None
        result, *shapes = (constant_shape(one) for one in (old, *before))
        known = [shape for shape in shapes if shape is not None]
        if result is None or len(known) < len(shapes) or len({len(shape) for shape in known}) > 1:
            return None
        images = [
            self.images.get(operand) or _as_images(operand, shape)
            for operand, shape in zip(operands, known, strict=True)
        ]
        made = ON_IMAGES[new.op.name](new, images, known[0], result)  # type: ignore[attr-defined]
        return made if made is None or len(result) < len(known[0]) else self._remember(made, result)

    def _line(self, old: Call, new: Call) -> None:
        """A line that is a view of an image of one row, as a transposed convolution gives it."""
        shape, result = constant_shape(old.args[0]), constant_shape(old)
        if shape is not None and result is not None and len(result) == LINE:
            if shape == (*result[:2], 1, result[2]):
                self.images[new] = new.args[0]

    def _elementwise(self, old: Call, new: Call) -> RelayExpr | None:
        """The operator on images, where its operands are the same for all pixels or images themselves."""
        if not any(argument in self.images for argument in new.args):
            return None
        shape = constant_shape(old)
        if shape is None or not (_has_no_axis(new) or _adds_to_channels(new)):
            return None
        operands: list[RelayExpr] = []
        for argument, before in zip(new.args, old.args, strict=True):
            made = self._operand(argument, constant_shape(before), shape, _adds_to_channels(new))
            if made is None:
                return None
            operands.append(made)
        return self._remember(Call(new.op, tuple(operands), new.attrs), shape)

    def _operand(
        self, argument: RelayExpr, extents: Constants | None, shape: Constants, by_axis: bool
    ) -> RelayExpr | None:
        if extents is None:
            return None
        if extents == shape:
            return self.images.get(argument) or _as_images(argument, shape)
        alike = len(extents) == len(shape) and (len(shape) == LINE or extents[:3] == shape[:3])
        # What there is one of for each channel of a volume is the image of a volume of one pixel.
        of_channels = len(extents) == len(shape) and extents == (1, shape[1], *(1,) * (len(shape) - 2))
        if (alike or of_channels) and argument in self.images:
            return self.images[argument]
        if by_axis or prod(extents) == 1:
            return argument if len(extents) <= 1 else call("reshape", argument, newshape=(1,))
        whole = (1,) * (len(shape) - len(extents)) + extents
        channels = shape[1]
        if whole != (1, channels) + (1,) * (len(shape) - 2):
            return None
        return call("reshape", argument, newshape=(channels, 1, 1))


def _image_operands(made: Call) -> Sequence[RelayExpr]:
    """The operands of an operator of ``ON_IMAGES`` that are lines or volumes."""
    if isinstance(made.args[0], Tuple):
        return made.args[0].fields
    return made.args[:1] if is_call(made, *OTHER_OPERANDS) else made.args


def _has_no_axis(new: Call) -> bool:
    return not any(hasattr(new.attrs, name) for name in ("axis", "shape", "newshape"))


def _adds_to_channels(new: Call) -> bool:
    attrs: Any = new.attrs
    return is_call(new, "nn.bias_add") and attrs.axis == 1


@dataclass
class ConvolveImages(FunctionPass):
    """conv1d and conv3d of constant shape become conv2d on processors that compute those in blocks."""

    name = "ConvolveImages"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is None or "cpu" not in target.keys:
            return func
        return rewritten(_ToImages(), func)
