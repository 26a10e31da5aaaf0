"""Converters of Darknet's layers, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.darknet.ops import activation, detection, joining, layers, pooling
