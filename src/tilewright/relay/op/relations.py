"""Type relations that many operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import broadcast_shapes, dims, tensor, tensors


def same_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The result has the type of the only, or the first, argument."""
    return tensor(types[0], "the argument")


def broadcast(types: Sequence[Type], attrs: Any) -> Type | None:
    """NumPy's broadcasting of two tensors of one element type."""
    found = _pair(types)
    return found and TensorType(broadcast_shapes(dims(found[0]), dims(found[1])), found[0].dtype)


def broadcast_comparison(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``broadcast``, with a result of type bool."""
    found = _pair(types)
    return found and TensorType(broadcast_shapes(dims(found[0]), dims(found[1])), "bool")


def _pair(types: Sequence[Type]) -> tuple[TensorType, TensorType] | None:
    found = tensors(types, "the left operand", "the right operand")
    if found is None:
        return None
    left, right = found
    if left.dtype is not right.dtype:
        raise RelationError(f"the operands have different element types, {left.dtype} and {right.dtype}")
    return left, right
