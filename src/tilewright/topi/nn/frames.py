"""The frames of volumes: a batch of images, or the rows of images whose columns are pixels of a frame."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi.nn.utils import channel_block
from tilewright.topi.utils import get_const_tuple


def frames_to_rows(data: Tensor, frames: int, parts: int = 1, layout: str = "NCHW") -> Tensor:
    """Every ``frames`` images of a batch as ``parts`` images, which have a row for each frame:
    ``(n * frames, c, h, w)`` becomes ``(n * parts, c, frames, h * w // parts)``, of which each has ``h // parts`` rows
    of every frame. The layout is NCHW, or NCHW with the channels in blocks (``NCHW16c``)."""
    channel_block(layout)  # refuses others
    images, channels, height, width, *block = get_const_tuple(data.shape)

    def element(n: Any, c: Any, frame: Any, pixel: Any, *part: Any) -> Any:
        image = tir.floordiv(n, parts) * frames + frame
        row = tir.floormod(n, parts) * (height // parts) + tir.floordiv(pixel, width)
        return data(image, c, row, tir.floormod(pixel, width), *part)

    shape = (images // frames * parts, channels, frames, height * width // parts, *block)
    made: Tensor = te.compute(shape, element, name="frames_to_rows", tag="injective")
    return made


def rows_to_frames(data: Tensor, height: int, parts: int = 1, layout: str = "NCHW") -> Tensor:
    """The inverse: a row of every ``parts`` images as one image of ``height`` rows."""
    channel_block(layout)  # refuses others
    images, channels, frames, pixels, *block = get_const_tuple(data.shape)
    rows, width = height // parts, pixels * parts // height

    def element(n: Any, c: Any, h: Any, w: Any, *part: Any) -> Any:
        image = tir.floordiv(n, frames) * parts + tir.floordiv(h, rows)
        return data(image, c, tir.floormod(n, frames), tir.floormod(h, rows) * width + w, *part)

    shape = (images // parts * frames, channels, height, width, *block)
    made: Tensor = te.compute(shape, element, name="rows_to_frames", tag="injective")
    return made
