"""Converters of Caffe's layers, a file a family. Importing this registers them all."""

from tilewright.relay.frontend.caffe.ops import elementwise, layers, shape
