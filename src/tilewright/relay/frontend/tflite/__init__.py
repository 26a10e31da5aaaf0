"""The TFLite frontend."""

from tilewright.relay.frontend.tflite.format import FRONTEND, from_tflite

__all__ = ["FRONTEND", "from_tflite"]
