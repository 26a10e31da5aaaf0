"""The TFLite frontend."""

from tilewright.relay.frontend.tflite.converter import OperatorConverter
from tilewright.relay.frontend.tflite.format import FRONTEND, from_tflite

__all__ = ["FRONTEND", "OperatorConverter", "from_tflite"]
