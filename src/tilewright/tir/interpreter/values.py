"""The interpreter's representation of values, and conversions to a type.

A scalar integer is a Python ``int`` in the range of its type, a bool a Python ``bool``, a float a NumPy scalar of its
type, so that every operation rounds as the type does. A bfloat16 is a ``numpy.float32`` whose value a bfloat16 can
hold: float32 has more than twice its digits, so that rounding the float32 result again gives the right bfloat16. A
vector is a NumPy array of its lanes. A handle is a ``Pointer``, ``None`` or any Python object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.expr import wrap_integer
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.support.numbers import float_to_integer, integer_to_float, round_float

Convert = Callable[[Any], Any]

_FLOATS: dict[int, np.dtype[Any]] = {bits: np.dtype(f"float{bits}") for bits in (16, 32, 64)}


def storage_type(dtype: DataType) -> np.dtype[Any]:
    """The NumPy type of one lane in memory; bfloat16 is stored as its bits."""
    if dtype.is_bool:
        return np.dtype(np.bool_)
    if dtype.is_integral:
        width = next(width for width in (8, 16, 32, 64) if dtype.bits <= width)
        return np.dtype(f"{'uint' if dtype.is_uint else 'int'}{width}")
    if dtype.is_bfloat16:
        return np.dtype(np.uint16)
    if dtype.is_float and dtype.bits in _FLOATS:
        return _FLOATS[dtype.bits]
    raise TilewrightError(f"the interpreter has no values of type {dtype}")


def lane_type(dtype: DataType) -> np.dtype[Any]:
    """The NumPy type in which lanes are computed."""
    if dtype.is_handle:
        return np.dtype(object)
    return np.dtype(np.float32) if dtype.is_bfloat16 else storage_type(dtype)


def round_to_bfloat16(value: Any) -> Any:
    """A float32, or an array of them, rounded to the nearest bfloat16, ties to even."""
    array = np.asarray(value, dtype=np.float32)
    bits = array.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    result = np.where(np.isnan(array), array, rounded.view(np.float32))
    return result if array.ndim else result[()]


def bfloat16_bits(value: Any) -> Any:
    """The sixteen bits of values that are bfloat16s."""
    array = np.asarray(value, dtype=np.float32)
    return (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def bfloat16_from_bits(bits: Any) -> Any:
    """The values that these bits stand for."""
    return (np.asarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def constant(dtype: DataType, value: Any) -> Any:
    """A Python number as a scalar of the type."""
    if dtype.is_bool:
        return bool(value)
    if dtype.is_integral:
        return wrap_integer(dtype, int(value))
    if dtype.is_handle:
        return value or None
    if dtype.is_bfloat16:
        return round_to_bfloat16(value)
    return lane_type(dtype).type(value)


def scalar_from_lane(dtype: DataType, lane: Any) -> Any:
    """One lane of a vector as a scalar value."""
    return lane.item() if dtype.is_integral else lane


def into_type(dtype: DataType) -> Convert | None:
    """The conversion of a result of Python or NumPy arithmetic to the type.

    None if it is there already.
    """
    if dtype.is_bfloat16:
        return round_to_bfloat16
    if not dtype.is_integral:
        return None
    if dtype.lanes > 1:
        return None if dtype.bits in (8, 16, 32, 64) else _lane_wrapper(dtype)
    if dtype.is_bool:
        return lambda value: bool(value & 1)
    if dtype.is_uint:
        mask = (1 << dtype.bits) - 1
        return lambda value: value & mask
    low, high = -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1

    def wrap(value: int) -> int:
        return value if low <= value <= high else wrap_integer(dtype, value)

    return wrap


def _lane_wrapper(dtype: DataType) -> Convert:
    """Wraps lanes of a type whose bits are fewer than those of its storage."""
    if dtype.is_bool:
        return lambda lanes: (np.asarray(lanes) & 1).astype(np.bool_)
    spare = storage_type(dtype).itemsize * 8 - dtype.bits
    # Shifting up drops the spare bits; shifting down again extends the sign, or fills with zeros if there is none.
    return lambda lanes: (lanes << spare) >> spare


def cast_between(source: DataType, target: DataType) -> Convert:
    """The conversion that ``Cast`` stands for; lanes are the same on both sides."""
    if source is target or (source.is_handle and target.is_handle):
        return lambda value: value
    if source.is_handle or target.is_handle:
        raise TilewrightError(f"{source} cannot be cast to {target}")
    return _cast_lanes(source, target) if target.lanes > 1 else _cast_scalar(source, target)


def _cast_scalar(source: DataType, target: DataType) -> Convert:
    if target.is_bool:
        return lambda value: bool(value != 0)
    if target.is_integral:
        wrap = into_type(target)
        assert wrap is not None
        if source.is_integral:
            return lambda value: wrap(int(value))
        return lambda value: float_to_integer(target, float(value))
    if target.is_bfloat16:
        return lambda value: np.float32(round_float(target, float(value)))
    make = lane_type(target).type
    if source.is_integral:
        return lambda value: make(integer_to_float(target, value))
    return make


def _cast_lanes(source: DataType, target: DataType) -> Convert:
    if target.is_bool:
        return lambda lanes: lanes != 0
    kind = lane_type(target)
    finish = into_type(target)
    if source.is_float and target.is_integral:
        scalar = _cast_scalar(source.element, target.element)
        return lambda lanes: np.array([scalar(lane) for lane in lanes], dtype=kind)
    if target.is_bfloat16:
        scalar = _cast_scalar(source.element, target.element)
        return lambda lanes: np.array([scalar(lane) for lane in lanes.tolist()], dtype=kind)
    if finish is None:
        return lambda lanes: lanes.astype(kind)
    return lambda lanes: finish(lanes.astype(kind))
