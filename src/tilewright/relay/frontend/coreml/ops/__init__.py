"""Converters of the operations of ML programs, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.coreml.ops import arrays, compressed, elementwise, images, recurrent
