"""The converters, by family; importing this registers them all."""

from tilewright.relay.frontend.torch.ops import (
    activations,
    convolution,
    elementwise,
    matrices,
    normalization,
    pooling,
    reductions,
    views,
)
