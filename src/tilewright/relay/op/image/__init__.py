"""Operators on images."""

from tilewright.relay.op.image.grid_sampling import affine_grid, dilation2d, grid_sample
from tilewright.relay.op.image.resize import crop_and_resize, resize1d, resize2d, resize3d

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
