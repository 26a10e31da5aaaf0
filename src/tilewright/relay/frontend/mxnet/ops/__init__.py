"""Converters of MXNet's operators, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.mxnet.ops import (
    activation,
    attention,
    creation,
    detection,
    elementwise,
    indexing,
    layers,
    matrices,
    normalization,
    ordering,
    pooling,
    reduction,
    shape,
    slicing,
)
