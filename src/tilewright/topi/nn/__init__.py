"""Neural-network operators as tensor expressions.

Several operators have the name of the module that they stand in; as attributes of this package they are the operators.
"""

from tilewright.topi.nn.adaptive_pooling import adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool
from tilewright.topi.nn.attention import attention
from tilewright.topi.nn.batch_matmul import batch_matmul, batch_matmul_legalize
from tilewright.topi.nn.batch_to_space_nd import batch_to_space_nd
from tilewright.topi.nn.bitserial_conv2d import (
    bitserial_conv2d_legalize,
    bitserial_conv2d_nchw,
    bitserial_conv2d_nhwc,
)
from tilewright.topi.nn.bitserial_dense import bitserial_dense
from tilewright.topi.nn.bitserial_util import binary_op_multiplier, bitpack
from tilewright.topi.nn.bnn import binarize_pack, binary_dense
from tilewright.topi.nn.channel_shuffle import channel_shuffle
from tilewright.topi.nn.conv1d import conv1d, conv1d_ncw, conv1d_nwc, group_conv1d_ncw, group_conv1d_nwc
from tilewright.topi.nn.conv1d_transpose import (
    conv1d_transpose_legalize,
    conv1d_transpose_ncw,
    group_conv1d_transpose_ncw,
)
from tilewright.topi.nn.conv2d import (
    conv2d,
    conv2d_alter_layout,
    conv2d_gemm_weight_transform,
    conv2d_hwcn,
    conv2d_infer_layout,
    conv2d_legalize,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_NCHWc_int8,
    conv2d_nhwc,
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
    group_conv2d_nchw,
    group_conv2d_nhwc,
    unpack_NCHWc_to_nchw,
)
from tilewright.topi.nn.conv2d_packed import conv2d_nchw_packed
from tilewright.topi.nn.conv2d_transpose import (
    conv2d_transpose_alter_layout,
    conv2d_transpose_legalize,
    conv2d_transpose_nchw,
    conv2d_transpose_nchw_preprocess,
    declaration_conv2d_transpose_impl,
    group_conv2d_transpose_nchw,
)
from tilewright.topi.nn.conv2d_transpose_NCHWc import conv2d_transpose_NCHWc
from tilewright.topi.nn.conv2d_winograd_NCHWc import conv2d_winograd_NCHWc
from tilewright.topi.nn.conv3d import (
    conv3d_alter_layout,
    conv3d_ncdhw,
    conv3d_ndhwc,
    conv3d_winograd_weight_transform,
)
from tilewright.topi.nn.conv3d_transpose import (
    conv3d_transpose_legalize,
    conv3d_transpose_ncdhw,
    conv3d_transpose_ncdhw_preprocess,
    declaration_conv3d_transpose_impl,
    group_conv3d_transpose_ncdhw,
)
from tilewright.topi.nn.convolution import conv, conv_transpose
from tilewright.topi.nn.correlation import correlation_nchw
from tilewright.topi.nn.deformable_conv2d import deformable_conv2d_nchw, deformable_conv2d_nhwc
from tilewright.topi.nn.dense import (
    dense,
    dense_alter_layout,
    dense_legalize,
    dense_pack,
    matmul,
    matmul_legalize,
)
from tilewright.topi.nn.dense_packed import batch_matmul_transposed, dense_packed, dense_packed_lanes
from tilewright.topi.nn.depth_to_space import depth_to_space
from tilewright.topi.nn.depthwise_conv2d import (
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
    depthwise_conv2d_infer_layout,
    depthwise_conv2d_nchw,
    depthwise_conv2d_NCHWc,
    depthwise_conv2d_nhwc,
)
from tilewright.topi.nn.depthwise_conv2d_unpadded import depthwise_conv2d_NCHWc_unpadded
from tilewright.topi.nn.dilate import dilate
from tilewright.topi.nn.elemwise import leaky_relu, prelu, relu
from tilewright.topi.nn.fifo_buffer import fifo_buffer
from tilewright.topi.nn.flatten import flatten
from tilewright.topi.nn.frames import frames_to_rows, rows_to_frames
from tilewright.topi.nn.local_response_norm import lrn
from tilewright.topi.nn.loss import cross_entropy, cross_entropy_with_logits, nll_loss
from tilewright.topi.nn.mapping import scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc
from tilewright.topi.nn.normalization import batch_norm, group_norm, instance_norm, l2_normalize, layer_norm
from tilewright.topi.nn.packed_lane_products import (
    batch_matmul_packed_lanes,
    conv2d_NCHWc_packed_lanes,
    dense_pack_packed_lanes,
)
from tilewright.topi.nn.pad import mirror_pad, pad
from tilewright.topi.nn.pooling import pool1d, pool2d, pool3d, pool_grad
from tilewright.topi.nn.qnn import (
    SQNN_CODE_TO_DTYPE,
    SQNN_DISABLE,
    SQNN_DTYPE_TO_CODE,
    SQNN_INT8,
    SQNN_INT32,
    SQNN_UINT8,
    simulated_dequantize,
    simulated_quantize,
)
from tilewright.topi.nn.recurrent import recurrent, recurrent_block
from tilewright.topi.nn.softmax import fast_softmax, log_softmax, softmax, softmax_common
from tilewright.topi.nn.space_to_batch_nd import space_to_batch_nd
from tilewright.topi.nn.space_to_depth import space_to_depth
from tilewright.topi.nn.sparse import (
    sparse_add,
    sparse_conv2d,
    sparse_dense,
    sparse_dense_alter_layout,
    sparse_dense_kernel,
    sparse_dense_sp_lhs,
    sparse_dense_sp_rhs,
    sparse_transpose,
)
from tilewright.topi.nn.upsampling import upsampling, upsampling3d
from tilewright.topi.nn.utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, infer_pad, infer_stride
from tilewright.topi.nn.weight_only import dense_weight_only
from tilewright.topi.nn.winograd_util import winograd_transform_matrices
