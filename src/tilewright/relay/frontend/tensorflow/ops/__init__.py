"""Converters of operators, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.tensorflow.ops import (
    convolution,
    counting,
    elementwise,
    functions,
    images,
    lists,
    matrices,
    normalization,
    pooling,
    random,
    recurrent,
    reduction,
    segments,
    shape,
    slicing,
    sparse,
    special,
)
