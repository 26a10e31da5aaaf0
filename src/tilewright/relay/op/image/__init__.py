"""Operators on images."""

from tilewright.relay.op.image.image import (
    affine_grid,
    crop_and_resize,
    dilation2d,
    grid_sample,
    resize1d,
    resize2d,
    resize3d,
)

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
