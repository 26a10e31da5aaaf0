"""Operators of neural networks.

Some functions have the name of the module that defines them; as attributes of this package they are the functions.
"""

from tilewright.relay.op.nn import byte_table
from tilewright.relay.op.nn.activation import (
    bias_add,
    dropout,
    dropout_raw,
    fast_softmax,
    leaky_relu,
    log_softmax,
    prelu,
    relu,
    softmax,
)
from tilewright.relay.op.nn.attention import contrib_attention
from tilewright.relay.op.nn.bitserial import bitpack, bitserial_conv2d, bitserial_dense
from tilewright.relay.op.nn.convolution import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
)
from tilewright.relay.op.nn.convolution_blocked import (
    contrib_conv2d_gemm_weight_transform,
    contrib_conv2d_gemm_without_weight_transform,
    contrib_conv2d_nchwc,
    contrib_depthwise_conv2d_nchwc,
)
from tilewright.relay.op.nn.deformable import correlation, deformable_conv2d
from tilewright.relay.op.nn.dense import batch_matmul, contrib_dense_pack, dense, matmul
from tilewright.relay.op.nn.frames import contrib_frames_to_rows, contrib_rows_to_frames
from tilewright.relay.op.nn.loss import cross_entropy, cross_entropy_with_logits, nll_loss
from tilewright.relay.op.nn.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    l2_normalize,
    layer_norm,
    lrn,
)
from tilewright.relay.op.nn.padding import dilate, mirror_pad, pad
from tilewright.relay.op.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool2d_grad,
    avg_pool3d,
    global_avg_pool1d,
    global_avg_pool2d,
    global_avg_pool3d,
    global_max_pool1d,
    global_max_pool2d,
    global_max_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool2d_grad,
    max_pool3d,
)
from tilewright.relay.op.nn.recurrent import contrib_recurrent
from tilewright.relay.op.nn.shuffle import contrib_channel_shuffle
from tilewright.relay.op.nn.space import (
    batch_flatten,
    batch_to_space_nd,
    depth_to_space,
    fifo_buffer,
    space_to_batch_nd,
    space_to_depth,
)
from tilewright.relay.op.nn.sparse import sparse_add, sparse_conv2d, sparse_dense, sparse_transpose
from tilewright.relay.op.nn.upsampling import upsampling, upsampling3d
from tilewright.relay.op.nn.weight_only import contrib_dense_weight_only
from tilewright.relay.op.nn.winograd import (
    contrib_conv2d_winograd_nnpack_weight_transform,
    contrib_conv2d_winograd_weight_transform,
    contrib_conv2d_winograd_without_weight_transform,
    contrib_conv3d_winograd_weight_transform,
    contrib_conv3d_winograd_without_weight_transform,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool2d_grad",
    "avg_pool3d",
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "bitpack",
    "bitserial_conv2d",
    "bitserial_dense",
    "contrib_conv2d_gemm_weight_transform",
    "contrib_conv2d_gemm_without_weight_transform",
    "contrib_conv2d_nchwc",
    "contrib_conv2d_winograd_nnpack_weight_transform",
    "contrib_conv2d_winograd_weight_transform",
    "contrib_conv2d_winograd_without_weight_transform",
    "contrib_conv3d_winograd_weight_transform",
    "contrib_conv3d_winograd_without_weight_transform",
    "contrib_dense_pack",
    "contrib_dense_weight_only",
    "contrib_depthwise_conv2d_nchwc",
    "contrib_channel_shuffle",
    "contrib_frames_to_rows",
    "contrib_rows_to_frames",
    "contrib_attention",
    "contrib_recurrent",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "correlation",
    "cross_entropy",
    "cross_entropy_with_logits",
    "deformable_conv2d",
    "dense",
    "depth_to_space",
    "dilate",
    "dropout",
    "dropout_raw",
    "fast_softmax",
    "fifo_buffer",
    "global_avg_pool1d",
    "global_avg_pool2d",
    "global_avg_pool3d",
    "global_max_pool1d",
    "global_max_pool2d",
    "global_max_pool3d",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_grad",
    "max_pool3d",
    "mirror_pad",
    "nll_loss",
    "pad",
    "prelu",
    "relu",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_conv2d",
    "sparse_dense",
    "sparse_transpose",
    "upsampling",
    "upsampling3d",
]
