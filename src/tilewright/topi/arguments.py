"""Checks of arguments that operators share: axes, dtypes and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.ir.operators import as_expr
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor


def as_int(name: str, what: str, value: Any) -> int:
    """A number that must be constant at compile time."""
    if isinstance(value, IntImm):
        return int(value.value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise ExpressionError(f"{name}: {what} must be an integer, not {value!r}")


def as_ints(name: str, what: str, values: Any) -> list[int]:
    """Numbers that must be constant at compile time; a single one counts as a list of one."""
    if isinstance(values, Iterable) and not isinstance(values, (PrimExpr, Tensor)):
        return [as_int(name, what, value) for value in values]
    return [as_int(name, what, values)]


def real_axis(name: str, axis: Any, rank: int) -> int:
    """The axis counted from the front; negative ones count from the back."""
    number = as_int(name, "the axis", axis)
    if not -rank <= number < rank:
        raise ExpressionError(f"{name}: axis {number} is outside of a tensor of {rank} dimensions")
    return number + rank if number < 0 else number


def real_axes(name: str, axes: Any, rank: int) -> list[int]:
    """The axes counted from the front, in ascending order; none may be repeated."""
    numbers = [real_axis(name, axis, rank) for axis in as_ints(name, "an axis", axes)]
    if len(set(numbers)) != len(numbers):
        raise ExpressionError(f"{name}: an axis is repeated in {as_ints(name, 'an axis', axes)}")
    return sorted(numbers)


def check_integers(name: str, what: str, tensor: Tensor) -> None:
    """Require an integer type for indices and counts."""
    if not tensor.dtype.is_integral or tensor.dtype.is_bool:
        raise ExpressionError(f"{name}: {what} must be integers, not {tensor.dtype}")


def check_tensor(name: str, value: Any) -> None:
    """Require a tensor."""
    if not isinstance(value, Tensor):
        raise ExpressionError(f"{name} takes a tensor, not {value!r}")


def accumulator_type(dtype: DataType) -> DataType:
    """The type in which values are added up: float32 for the 16-bit floating-point types."""
    return DataType("float32") if dtype.is_float and dtype.bits < 32 else dtype


def product(extents: Sequence[Any]) -> PrimExpr:
    """The product of dimensions; the constant 1 of none."""
    result = as_expr(1)
    for extent in extents:
        result = result * extent
    return result
