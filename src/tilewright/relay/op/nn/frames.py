"""The frames of volumes as a batch of images, or as the rows of images, for plain and blocked layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.nn.shuffle import blocks_of_channels
from tilewright.relay.op.shapes import dims, require_multiple, tensor


@attributes
class FramesToRowsAttrs(OpAttrs):
    """The frames of a volume, the images that it becomes, and the layout: NCHW, with the channels in blocks or not."""

    frames: int = 1
    parts: int = 1
    layout: str = "NCHW"


@attributes
class RowsToFramesAttrs(OpAttrs):
    """The rows of a frame, the images of a volume, and the layout: NCHW, with the channels in blocks or not."""

    height: int = 1
    parts: int = 1
    layout: str = "NCHW"


def _extents(data: TensorType, layout: str) -> list[int]:
    extents = dims(data)
    if not layout.startswith("NCHW") or len(extents) != (4 if layout == "NCHW" else 5):
        raise RelationError(f"the data has {len(extents)} dimensions, its layout is {layout}")
    if not all(isinstance(extent, int) for extent in extents):
        raise RelationError("frames are arranged where all sizes are known")
    return [extent for extent in extents if isinstance(extent, int)]


def _rows(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    images, channels, height, width, *block = _extents(data, attrs.layout)
    require_multiple(images, attrs.frames, f"{images} images are not volumes of {attrs.frames} frames")
    require_multiple(height, attrs.parts, f"{height} rows cannot be divided into {attrs.parts} parts")
    shape = (
        images // attrs.frames * attrs.parts,
        channels,
        attrs.frames,
        height * width // attrs.parts,
        *block,
    )
    return TensorType(shape, data.dtype)


def _frames(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the data")
    if data is None:
        return None
    images, channels, frames, pixels, *block = _extents(data, attrs.layout)
    require_multiple(images, attrs.parts, f"{images} images are not volumes of {attrs.parts}")
    require_multiple(
        attrs.height, attrs.parts, f"{attrs.height} rows cannot be divided into {attrs.parts} parts"
    )
    rows = attrs.height // attrs.parts
    require_multiple(pixels, rows, f"{pixels} pixels do not fill {rows} rows")
    return TensorType(
        (images // attrs.parts * frames, channels, attrs.height, pixels // rows, *block), data.dtype
    )


def _rows_reference(attrs: Any, data: Any) -> Any:
    images, channels, height, width, *block = data.shape
    volumes, pixels = images // attrs.frames, height * width // attrs.parts
    apart = data.reshape(volumes, attrs.frames, channels, attrs.parts, pixels, *block)
    moved = np.moveaxis(apart, (3, 2), (1, 2))
    return moved.reshape(volumes * attrs.parts, channels, attrs.frames, pixels, *block)


def _frames_reference(attrs: Any, data: Any) -> Any:
    images, channels, frames, pixels, *block = data.shape
    volumes = images // attrs.parts
    apart = np.moveaxis(data.reshape(volumes, attrs.parts, channels, frames, pixels, *block), (3, 2), (1, 2))
    return apart.reshape(volumes * frames, channels, attrs.height, -1, *block)


def _rows_gradient(primal: Any, grad: Any) -> list[Any]:
    attrs, height = primal.attrs, dims(primal.args[0].checked_type)[2]
    return [call("nn.contrib_rows_to_frames", grad, height=height, parts=attrs.parts, layout=attrs.layout)]


def _frames_gradient(primal: Any, grad: Any) -> list[Any]:
    attrs, frames = primal.attrs, dims(primal.args[0].checked_type)[2]
    return [call("nn.contrib_frames_to_rows", grad, frames=frames, parts=attrs.parts, layout=attrs.layout)]


FRAMES_TO_ROWS = define(
    "nn.contrib_frames_to_rows",
    arguments=("data",),
    attrs=FramesToRowsAttrs,
    relation=_rows,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.frames_to_rows(inputs[0], attrs.frames, attrs.parts, attrs.layout)
    ],
    reference=_rows_reference,
    gradient=_rows_gradient,
    layout=blocks_of_channels,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Images of a batch as the rows of one image.",
)

ROWS_TO_FRAMES = define(
    "nn.contrib_rows_to_frames",
    arguments=("data",),
    attrs=RowsToFramesAttrs,
    relation=_frames,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.rows_to_frames(inputs[0], attrs.height, attrs.parts, attrs.layout)
    ],
    reference=_frames_reference,
    gradient=_frames_gradient,
    layout=blocks_of_channels,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="The rows of images as images of their own.",
)


def contrib_frames_to_rows(data: RelayExpr, frames: int, parts: int = 1, layout: str = "NCHW") -> Call:
    """Every ``frames`` images of a batch as ``parts`` images, which have a row for each frame."""
    return Call(FRAMES_TO_ROWS, (data,), FramesToRowsAttrs(frames, parts, layout))


def contrib_rows_to_frames(data: RelayExpr, height: int, parts: int = 1, layout: str = "NCHW") -> Call:
    """A row of every ``parts`` images as one image of ``height`` rows."""
    return Call(ROWS_TO_FRAMES, (data,), RowsToFramesAttrs(height, parts, layout))
