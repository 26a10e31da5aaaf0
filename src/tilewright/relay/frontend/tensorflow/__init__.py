"""The TensorFlow frontend."""

from tilewright.relay.frontend.tensorflow.format import FRONTEND, FRONTENDS, from_tensorflow

__all__ = ["FRONTEND", "FRONTENDS", "from_tensorflow"]
