"""Converters, by family. Importing a family registers its converters."""

from tilewright.relay.frontend.jax.ops import (
    control_flow,
    convolution,
    elementwise,
    indexing,
    integers,
    matrices,
    ordering,
    reduction,
    shape,
    slicing,
    windows,
)
