"""Constant shapes."""

from __future__ import annotations

from typing import Any

from tilewright.topi.utils import get_const_tuple


def constant_shape(shape: Any) -> tuple[int, ...] | None:
    """A shape as integers; None if a dimension is dynamic."""
    found = get_const_tuple(shape)
    return found if all(isinstance(extent, int) for extent in found) else None
