"""What the dynamic operators share."""

from __future__ import annotations

from typing import Any

from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.transform.support import constant_shape

MOST_DIMENSIONS = 1024
"""A vector of more integers is not a shape."""


def unknown(rank: int) -> list[AnyDimension]:
    """Dimensions of which nothing is known."""
    return [AnyDimension() for _ in range(rank)]


def vector_size(kind: TensorType, what: str) -> int:
    """The number of integers in an argument: a vector of constant length, or a scalar, which counts as one.

    Programs compute them in floating point, too: such numbers are truncated, as a cast does it.
    """
    if kind.dtype.is_bool or len(kind.shape) > 1:
        raise RelationError(f"{what} is a vector of integers, not {kind}")
    shape = constant_shape(kind, what)
    if shape and shape[0] > MOST_DIMENSIONS:
        raise RelationError(f"{what} has {shape[0]} integers: no tensor has so many dimensions")
    return shape[0] if shape else 1


def whole_numbers(values: Any) -> list[int]:
    """The elements of a vector, or a scalar as a vector of one."""
    return [int(value) for value in values.reshape(-1)]


def reference_of(name: str, attrs: Any, *arrays: Any) -> Any:
    """Evaluates the reference of the operator that takes attributes."""
    return Op.get(name).get_attr("FReference")(attrs, *arrays)
