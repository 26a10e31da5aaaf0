"""Converters of Caffe2's operators, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.caffe2.ops import elementwise, layers, shape
