"""The reorganisation of YOLO's passthrough layer."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, ravel_index, simplify, unravel_index


def reorg(data: Tensor, stride: int) -> Tensor:
    """(batch, channels, height, width) as (batch, channels * stride**2, height / stride, width / stride), as Darknet.

    Darknet reads the input as if it were (batch, channels / stride**2, height * stride, width * stride), and gathers
    every ``stride``-th pixel.
    """
    batch, channels, height, width = data.shape
    for size, divisor, what in (
        (channels, stride * stride, "channels"),
        (height, stride, "height"),
        (width, stride, "width"),
    ):
        (known,) = get_const_tuple([size])
        if isinstance(known, int) and known % divisor:
            raise InvalidShapeError(f"reorg by {stride}: the {what} {known} is not a multiple of {divisor}")
    fewer = simplify(channels // (stride * stride))
    out_height, out_width = simplify(height // stride), simplify(width // stride)
    shape = (batch, simplify(channels * stride * stride), out_height, out_width)

    def element(n: Any, c: Any, y: Any, x: Any) -> Any:
        flat = ravel_index([c, y, x], shape[1:])
        k, j, i = unravel_index(flat, [channels, height, width])
        offset = k // fewer
        row, column = j * stride + offset // stride, i * stride + offset % stride
        source = ravel_index([k % fewer, row, column], [fewer, height * stride, width * stride])
        return data(n, *unravel_index(source, [channels, height, width]))

    made: Tensor = te.compute(shape, element, name="reorg", tag=tag.INJECTIVE)
    return made
