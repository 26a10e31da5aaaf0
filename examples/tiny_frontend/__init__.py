"""A frontend for a toy format: layers in a text file (``model.tiny``), weights in an archive beside it (``model.npz``).

input x 1 4
dense w1
bias b1
relu
"""

from tilewright.relay.frontend.registry import Frontend

from .importer import from_tiny, is_tiny, unsupported_in

FRONTEND = Frontend("tiny", ("tiny",), from_tiny, is_tiny, unsupported_in)

__all__ = ["FRONTEND", "from_tiny"]
