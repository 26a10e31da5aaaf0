"""Graph rewrites for GPUs: convolutions with channels last."""

from tilewright.relay.target.gpu.layout import conv2d_channels_last
from tilewright.relay.target.rewrites import GraphRewrites

REWRITES = GraphRewrites(alter_layout={"nn.conv2d": conv2d_channels_last})
