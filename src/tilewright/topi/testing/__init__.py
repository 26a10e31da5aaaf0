"""What operators should compute, in plain NumPy: references for tests."""

from tilewright.topi.testing.convolution import (
    conv1d_ncw_python,
    conv1d_transpose_ncw_python,
    conv2d_hwcn_python,
    conv2d_nchw_python,
    conv2d_nhwc_python,
    conv2d_transpose_nchw_python,
    conv2d_transpose_nhwc_python,
    conv3d_ncdhw_python,
    conv3d_ndhwc_python,
    conv3d_transpose_ncdhw_python,
    deformable_conv2d_nchw_python,
    deformable_conv2d_nhwc_python,
    depthwise_conv2d_python_nchw,
    depthwise_conv2d_python_nchwc,
    depthwise_conv2d_python_nhwc,
    group_conv1d_ncw_python,
)
from tilewright.topi.testing.image import (
    affine_grid_python,
    crop_and_resize_python,
    grid_sample_nchw_python,
    resize1d_python,
    resize2d_python,
    resize3d_python,
)
from tilewright.topi.testing.movement import (
    batch_to_space_nd_python,
    depth_to_space_python,
    dilate_python,
    gather_nd_python,
    gather_python,
    matrix_set_diag,
    one_hot,
    reorg_python,
    searchsorted_ref,
    sequence_mask,
    slice_axis_python,
    space_to_batch_nd_python,
    space_to_depth_python,
    strided_set_python,
    strided_slice_python,
)
from tilewright.topi.testing.normalization import (
    batch_matmul,
    dense,
    l2_normalize_python,
    log_softmax_python,
    lrn_python,
    nll_loss,
    softmax_python,
)
from tilewright.topi.testing.pooling import adaptive_pool, pool_grad_nchw, poolnd_python
from tilewright.topi.testing.vision import (
    correlation_nchw_python,
    roi_align_nchw_python,
    roi_align_nhwc_python,
    roi_pool_nchw_python,
)
