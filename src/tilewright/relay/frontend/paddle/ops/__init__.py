"""Converters of PaddlePaddle's operators, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.paddle.ops import (
    activation,
    creation,
    elementwise,
    images,
    indexing,
    layers,
    matrices,
    normalization,
    ordering,
    pooling,
    recurrent,
    reduction,
    shape,
    slicing,
)
