"""Image operators as tensor expressions."""

from tilewright.topi.image.dilation2d import dilation2d_nchw, dilation2d_nhwc
from tilewright.topi.image.grid_sample import affine_grid, grid_sample
from tilewright.topi.image.resize import crop_and_resize, resize1d, resize2d, resize3d
