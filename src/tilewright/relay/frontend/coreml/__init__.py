"""The Core ML frontend: neural networks and ML programs."""

from tilewright.relay.frontend.coreml.format import FRONTEND, from_coreml

__all__ = ["FRONTEND", "from_coreml"]
