"""Converters of operators, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.tensorflow.ops import (
    convolution,
    elementwise,
    images,
    matrices,
    normalization,
    pooling,
    reduction,
    shape,
    slicing,
)
