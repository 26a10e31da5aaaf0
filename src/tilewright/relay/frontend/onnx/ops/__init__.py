"""The converters, by family; importing this registers them all."""

from tilewright.relay.frontend.onnx.ops import elementwise
