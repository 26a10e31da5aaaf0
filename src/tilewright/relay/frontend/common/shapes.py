"""Shapes of inputs as users give them, and limits of size that hold for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.support.errors import ModelError


class UnknownInput(ModelError, AssertionError):
    """A shape or a type was given for an input that the model does not have."""


MOST_DIMENSIONS = 64
"""A model with a tensor of more is refused."""
LARGEST_TENSOR = 1 << 36
"""Bytes: a model that makes a larger tensor is refused before anything is allocated."""


def input_type(name: str, shape: Sequence[Any], dtype: str) -> TensorType:
    """The type of an input; a dimension that is None stays unknown."""
    kind = TensorType([UnknownDimension() if extent is None else extent for extent in shape], dtype)
    check_size(f"the input {name!r}", kind)
    return kind


def check_size(what: str, kind: TensorType) -> None:
    """Refuse a tensor that is too large; ``what`` is its name in the message."""
    if len(kind.shape) > MOST_DIMENSIONS or tensor_bytes(kind) > LARGEST_TENSOR:
        raise ModelError(f"{what} has {len(kind.shape)} dimensions and {tensor_bytes(kind)} bytes")


def check_input_names(shapes: Mapping[str, Any], known: Iterable[str], listed: Iterable[str]) -> None:
    """Refuse a shape for an input that the model does not have; ``listed`` are the inputs that the message names."""
    inputs = set(known)
    for name in shapes:
        if name not in inputs:
            raise UnknownInput(f"the model has no input {name!r}; it has {', '.join(sorted(listed))}")


def tensor_bytes(kind: Type) -> int:
    """The size of a value as far as it is known; 0 for what is not a tensor or has an unknown dimension."""
    if isinstance(kind, TupleType):
        return sum(tensor_bytes(field) for field in kind.fields)
    if not isinstance(kind, TensorType):
        return 0
    total = kind.dtype.bits // 8 or 1
    for extent in kind.shape:
        value = getattr(extent, "value", None)
        if value is None:
            return 0
        total *= value
    return int(total)
