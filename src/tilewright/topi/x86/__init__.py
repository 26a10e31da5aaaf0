"""Operators and schedules for x86.

Every tile is computed from the description of the target, so the same functions serve SSE, AVX2 and AVX-512. What
differs from ``topi.nn`` is the way a computation is written: with weights packed and channels in blocks.
"""

from tilewright.schedule.cpu.layouts import (
    Conv2DLayouts,
    Conv2DWorkload,
    channel_block,
    choose_conv2d_blocking,
    conv2d_layouts,
    dense_block,
)
from tilewright.schedule.cpu.winograd_model import Convolution, choose_winograd_tile
from tilewright.topi.nn.conv2d_transpose import conv2d_transpose_nchw
from tilewright.topi.nn.conv3d_transpose import conv3d_transpose_ncdhw
from tilewright.topi.vision.rcnn.roi_align import roi_align_nchw
from tilewright.topi.x86.conv2d import (
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_NCHWc_int8,
    conv2d_nhwc,
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
    group_conv2d_nchw,
)
from tilewright.topi.x86.conv2d_transpose import AxisPhases, axis_phases, conv2d_transpose_NCHWc
from tilewright.topi.x86.dense import batch_matmul, dense, dense_nopack, dense_pack
from tilewright.topi.x86.depthwise import depthwise_conv2d_NCHWc
from tilewright.topi.x86.schedules import (
    schedule_adaptive_pool,
    schedule_batch_matmul,
    schedule_binarize_pack,
    schedule_binary_dense,
    schedule_bitserial_conv2d_nchw,
    schedule_bitserial_conv2d_nhwc,
    schedule_bitserial_dense,
    schedule_broadcast,
    schedule_concatenate,
    schedule_conv1d_ncw,
    schedule_conv1d_nwc,
    schedule_conv2d_nchw,
    schedule_conv2d_nchw_int8,
    schedule_conv2d_NCHWc,
    schedule_conv2d_NCHWc_int8,
    schedule_conv2d_nhwc,
    schedule_conv2d_transpose_nchw,
    schedule_conv2d_transpose_NCHWc,
    schedule_conv2d_winograd_NCHWc,
    schedule_conv3d_ncdhw,
    schedule_conv3d_ndhwc,
    schedule_conv3d_transpose_ncdhw,
    schedule_dense_nopack,
    schedule_dense_pack,
    schedule_depthwise_conv2d_nchw,
    schedule_depthwise_conv2d_NCHWc,
    schedule_depthwise_conv2d_nhwc,
    schedule_elemwise,
    schedule_group_conv1d_ncw,
    schedule_group_conv1d_nwc,
    schedule_group_conv2d_nchw,
    schedule_injective,
    schedule_injective_from_existing,
    schedule_matmul,
    schedule_pool,
    schedule_reduce,
    schedule_softmax,
    schedule_sparse_conv2d,
    schedule_sparse_dense,
)
from tilewright.topi.x86.winograd import conv2d_winograd_NCHWc
