"""Constant shapes, and sizes that stand for those which are known at run time only."""

from __future__ import annotations

from typing import Any, Final

from tilewright.topi.utils import get_const_tuple

TYPICAL_EXTENT: Final = 28
"""The height and width that an image of open size is assumed to have when the costs of its layouts and algorithms are
compared: in the middle, on a logarithmic scale, of those that occur in networks for images."""


def constant_shape(shape: Any) -> tuple[int, ...] | None:
    """A shape as integers; None if a dimension is dynamic."""
    found = get_const_tuple(shape)
    return found if all(isinstance(extent, int) for extent in found) else None


def typical_image(shape: Any) -> tuple[int, int, int, int] | None:
    """The shape (batch, channels, height, width) of an image, where an open batch has one image, and an open height or
    width is a typical one; None if the number of channels is open, or there are no elements."""
    if len(shape) != 4:
        return None
    batch, channels, height, width = (
        extent if isinstance(extent, int) else typical
        for extent, typical in zip(
            get_const_tuple(shape), (1, 0, TYPICAL_EXTENT, TYPICAL_EXTENT), strict=True
        )
    )
    return (batch, channels, height, width) if min(batch, channels, height, width) > 0 else None
