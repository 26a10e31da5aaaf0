"""The TensorFlow frontend."""

from tilewright.relay.frontend.tensorflow.format import FRONTEND, from_tensorflow

__all__ = ["FRONTEND", "from_tensorflow"]
