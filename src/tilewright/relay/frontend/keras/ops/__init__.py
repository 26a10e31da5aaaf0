"""Converters of Keras layers, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.keras.ops import (
    activations,
    layers,
    normalization,
    operations,
    pooling,
    recurrent,
    shapes,
)
