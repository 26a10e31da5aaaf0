"""A scale and a shift for each channel."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag


def _scale_shift(data: Tensor, scale: Tensor, shift: Tensor, channel_axes: tuple[int, ...]) -> Tensor:
    def element(*indices: Any) -> Any:
        channel = [indices[axis] for axis in channel_axes]
        return data(*indices) * scale(*channel) + shift(*channel)

    made: Tensor = te.compute(data.shape, element, name="ScaleShift", tag=tag.BROADCAST)
    return made


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """``Input * Scale[c] + Shift[c]`` for NCHW."""
    return _scale_shift(Input, Scale, Shift, (1,))


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """``Input * Scale[c] + Shift[c]`` for NHWC."""
    return _scale_shift(Input, Scale, Shift, (3,))


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """``Input * Scale[c, block] + Shift[c, block]`` for NCHW with channels in blocks."""
    return _scale_shift(Input, Scale, Shift, (1, 4))
