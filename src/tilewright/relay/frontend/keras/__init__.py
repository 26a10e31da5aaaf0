"""The Keras frontend."""

from tilewright.relay.frontend.keras.format import FRONTEND, from_keras

__all__ = ["FRONTEND", "from_keras"]
