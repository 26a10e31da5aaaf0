"""Scales and zero points: their types, their values, and how they meet a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Constant, const
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import Dimension, dims, same, tensor

Array = np.ndarray[Any, Any]


def check_scale(kind: Type, what: str, channels: Dimension | None = None) -> bool:
    """True if the type of a scale is known. It is float32: a scalar, or, where ``channels`` are given, one for each."""
    return _check(kind, what, ("float32",), channels)


def check_zero_point(kind: Type, what: str, channels: Dimension | None = None) -> bool:
    """The same of a zero point, which is an integer."""
    return _check(kind, what, ("int32", "int8", "uint8", "int16"), channels)


def _check(kind: Type, what: str, dtypes: Sequence[str], channels: Dimension | None) -> bool:
    found = tensor(kind, what)
    if found is None:
        return False
    if str(found.dtype) not in dtypes:
        raise RelationError(f"{what} is {' or '.join(dtypes[:1])}, not {found.dtype}")
    shape = dims(found)
    if not shape or shape == (1,):
        return True
    if channels is None or len(shape) != 1:
        raise RelationError(f"{what} is a scalar{'' if channels is None else ' or a vector'}, not {found}")
    same(shape[0], channels, f"{what}, which has one element per channel")
    return True


def value_of(expr: RelayExpr) -> Array | None:
    """The value of a constant; None for anything else."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def is_zero(expr: RelayExpr) -> bool:
    """True for a constant of zeros only."""
    value = value_of(expr)
    return value is not None and not value.any()


def is_same(first: RelayExpr, second: RelayExpr) -> bool:
    """True for one expression, or for equal constants."""
    if first is second:
        return True
    one, other = value_of(first), value_of(second)
    return one is not None and other is not None and one.size == other.size and bool((one == other).all())


def spread(expr: RelayExpr, kind: Type, rank: int, axis: int) -> RelayExpr:
    """A parameter shaped so that it meets a tensor of this rank: a vector lies along ``axis``."""
    assert isinstance(kind, TensorType)
    if len(kind.shape) == 0:
        return expr
    if dims(kind) == (1,):
        return call("reshape", expr, newshape=())
    shape = [1] * rank
    shape[axis % rank] = -1
    return call("reshape", expr, newshape=tuple(shape))


def spread_array(value: Array, rank: int, axis: int) -> Array:
    """The same of an array."""
    if value.size == 1:
        return value.reshape(())
    shape = [1] * rank
    shape[axis % rank] = -1
    return value.reshape(shape)


def wide(expr: RelayExpr, dtype: str = "int32") -> RelayExpr:
    """An integer tensor as a wider type."""
    value = value_of(expr)
    return call("cast", expr, dtype=dtype) if value is None else const(value.astype(dtype))


def constants(extents: Sequence[Dimension]) -> list[int]:
    """Dimensions that are known to be constant."""
    return [extent for extent in extents if isinstance(extent, int)]


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    kind = np.iinfo(dtype)
    return int(kind.min), int(kind.max)


def fixed_point(factor: float) -> tuple[int, int]:
    """A positive factor as ``multiplier * 2**(shift - 31)`` with a multiplier of 31 bits."""
    if factor == 0:
        return 0, 0
    fraction, shift = math.frexp(factor)
    multiplier = _half_away_from_zero(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return multiplier, shift


def _half_away_from_zero(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else -math.floor(-value + 0.5)
