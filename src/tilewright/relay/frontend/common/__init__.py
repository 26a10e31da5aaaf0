"""What frontends share: nodes and their errors, one error for all unsupported operators, shapes, limits of size."""

from tilewright.relay.frontend.common.needs import ShapeNeeded, ValueNeeded, value_needed
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.shapes import check_input_names, check_size, input_type, tensor_bytes
from tilewright.relay.frontend.common.unsupported import (
    Unsupported,
    UnsupportedOperators,
    collect_unsupported,
    require_supported,
)

__all__ = [
    "ModelNode",
    "ShapeNeeded",
    "Unsupported",
    "UnsupportedOperators",
    "ValueNeeded",
    "check_input_names",
    "check_size",
    "collect_unsupported",
    "input_type",
    "require_supported",
    "tensor_bytes",
    "value_needed",
]
