"""Overlap of boxes, for the references."""

from __future__ import annotations

from typing import Any


def overlap(one: Any, other: Any, pixel: float = 0.0) -> float:
    """The area that two boxes (two opposite corners each) share, over the area they cover together."""
    left, right = sorted((float(one[0]), float(one[2])))
    top, bottom = sorted((float(one[1]), float(one[3])))
    other_left, other_right = sorted((float(other[0]), float(other[2])))
    other_top, other_bottom = sorted((float(other[1]), float(other[3])))
    width = max(min(right, other_right) - max(left, other_left) + pixel, 0.0)
    height = max(min(bottom, other_bottom) - max(top, other_top) + pixel, 0.0)
    shared = width * height
    area = (right - left + pixel) * (bottom - top + pixel)
    other_area = (other_right - other_left + pixel) * (other_bottom - other_top + pixel)
    together = area + other_area - shared
    return shared / together if together > 0 else 0.0
