"""Graph rewrites for GPUs: convolutions with channels last, normalisation in one kernel, fewer and larger products."""

from tilewright.relay.target.gpu.fold_output_cast import FoldOutputCast
from tilewright.relay.target.gpu.layout import conv2d_channels_last
from tilewright.relay.target.rewrites import GraphRewrites

REWRITES = GraphRewrites(
    early_passes=(FoldOutputCast,),
    alter_layout={"nn.conv2d": conv2d_channels_last},
    kept=frozenset({"nn.layer_norm"}),
    joins_dense=True,
)
