"""Converters of the layers of neural networks, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.coreml.layers import activation, arrays, elementwise, images, recurrent
