"""The converters of Core ML's layers (neural networks) and operations (ML programs)."""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converters

LAYERS: Final = Converters()
"""A converter of a layer takes the node, the layer's parameters, and the expressions of its inputs."""
OPERATIONS: Final = Converters()
"""A converter of an operation takes the node, which knows its inputs by name."""
