"""Graph rewrites for CPUs: blocked layouts, packed weights, Winograd, packed lanes for dot-product instructions."""

from tilewright.relay.target.cpu.choose_blocks import choose_blocks
from tilewright.relay.target.cpu.convolve_images import ConvolveImages
from tilewright.relay.target.cpu.dense_of_constant import DenseOfConstant
from tilewright.relay.target.cpu.flatten_images import FlattenImages
from tilewright.relay.target.cpu.half_precision import WidenHalf
from tilewright.relay.target.cpu.layout import conv2d_in_blocks, dense_in_blocks
from tilewright.relay.target.cpu.low_precision import legal_batch_matmul, legal_conv2d, legal_dense
from tilewright.relay.target.cpu.pad_channels import PadChannels
from tilewright.relay.target.cpu.partial_residual import AddPartialResiduals
from tilewright.relay.target.cpu.split_dilation import SplitDilation
from tilewright.relay.target.cpu.tabulate import Tabulate
from tilewright.relay.target.cpu.transposed import (
    conv2d_transpose_in_blocks,
    legal_conv1d_transpose,
    legal_conv2d_transpose,
)
from tilewright.relay.target.cpu.unsigned_data import UnsignedData
from tilewright.relay.target.cpu.weight_only import KeepWeightsPacked
from tilewright.relay.target.rewrites import GraphRewrites

REWRITES = GraphRewrites(
    quantized_passes=(UnsignedData, Tabulate),
    early_passes=(KeepWeightsPacked, WidenHalf),
    passes=(DenseOfConstant, ConvolveImages, SplitDilation, AddPartialResiduals),
    folded_passes=(PadChannels,),
    fused_passes=(FlattenImages,),
    alter_layout={
        "nn.conv2d": conv2d_in_blocks,
        "nn.conv2d_transpose": conv2d_transpose_in_blocks,
        "nn.dense": dense_in_blocks,
    },
    legalize={
        "nn.conv2d": legal_conv2d,
        "nn.conv1d_transpose": legal_conv1d_transpose,
        "nn.conv2d_transpose": legal_conv2d_transpose,
        "nn.dense": legal_dense,
        "nn.batch_matmul": legal_batch_matmul,
    },
    plan_layouts=choose_blocks,
)
