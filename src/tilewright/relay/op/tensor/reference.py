"""References for cases that NumPy leaves undefined or computes differently from the compiled operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def is_integral(data: Array) -> bool:
    """True for integers and bool."""
    return bool(np.issubdtype(data.dtype, np.integer) or data.dtype == np.bool_)


def is_narrow_float(data: Array) -> bool:
    """True for floating-point types below 32 bits, those that NumPy does not know itself included."""
    return not is_integral(data) and data.dtype.itemsize < 4


def wide(data: Array) -> Array:
    """The data in a type that sums and products may use: 16-bit floating-point types become float32."""
    return data.astype(np.float32) if is_narrow_float(data) else data


def error_function(data: Array) -> Array:
    """The error function, in double precision."""
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(data.astype(np.float64)))


def sigmoid(data: Array) -> Array:
    """1 / (1 + exp(-x)), without rounding to a 16-bit type on the way."""
    given = wide(data)
    return np.asarray(1 / (1 + np.exp(-given)))


def reciprocal_square_root(data: Array) -> Array:
    """One over the square root."""
    return np.asarray(1 / np.sqrt(wide(data)))


def rounding(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A rounding function that leaves integers as they are."""
    return lambda data: data if is_integral(data) else function(data)


def half_away_from_zero(data: Array) -> Array:
    """The nearest integer; of two, the one farther from zero."""
    whole = np.trunc(data)
    return np.asarray(whole + np.copysign((np.abs(data - whole) >= 0.5).astype(data.dtype), data))


def floating_test(function: Callable[[Array], Any], of_integers: bool) -> Callable[[Array], Array]:
    """A test of floating-point numbers, which gives the same for all integers."""

    def test(data: Array) -> Array:
        return np.full(data.shape, of_integers) if is_integral(data) else np.asarray(function(data))

    return test


def fixed_point_product(data: Array, multiplier: int, shift: int) -> Array:
    """``data * multiplier * 2**(shift - 31)`` rounded to the nearest integer, halves upwards, in 64 bits."""
    down = np.int64(31 + max(-shift, 0))
    product = (data.astype(np.int64) << np.int64(max(shift, 0))) * np.int64(multiplier)
    return np.asarray((product + (np.int64(1) << (down - np.int64(1)))) >> down).astype(np.int32)


def _divisor(data: Array) -> Array:
    """A divisor of integers: zero counts as one, so that no program traps."""
    return np.where(data == 0, np.ones_like(data), data)


def quotient(left: Array, right: Array) -> Any:
    """The quotient; of integers, rounded towards zero."""
    if not is_integral(left):
        return np.true_divide(left, right)
    divisor = _divisor(right)
    down = np.floor_divide(left, divisor)
    inexact = np.multiply(down, divisor) != left
    return down + (inexact & ((left < 0) != (divisor < 0))).astype(down.dtype)


def floored_quotient(left: Array, right: Array) -> Any:
    """The quotient rounded down."""
    return np.floor_divide(left, _divisor(right)) if is_integral(left) else np.floor(left / right)


def remainder(left: Array, right: Array) -> Any:
    """The remainder with the sign of the dividend."""
    return np.fmod(left, _divisor(right) if is_integral(left) else right)


def floored_remainder(left: Array, right: Array) -> Any:
    """The remainder with the sign of the divisor."""
    return np.mod(left, _divisor(right) if is_integral(left) else right)


def _count(bits: Array, most: int) -> tuple[Array, Array]:
    """Shift counts that NumPy defines, and where they are the given ones."""
    within = (bits >= 0) & (bits < most)
    return np.where(within, bits, np.zeros_like(bits)), within


def left_shift(left: Array, right: Array) -> Any:
    """The bits moved up; a count out of range moves all of them out."""
    count, within = _count(right, 8 * left.dtype.itemsize)
    return np.where(within, np.left_shift(left, count), np.zeros_like(left))


def right_shift(left: Array, right: Array) -> Any:
    """The bits moved down; a count out of range leaves the sign."""
    count, within = _count(right, 8 * left.dtype.itemsize)
    sign = np.where(left < 0, ~np.zeros_like(left), np.zeros_like(left))
    return np.where(within, np.right_shift(left, count), sign)


def power(left: Array, right: Array) -> Any:
    """``left`` to the power of ``right``; a negative power of an integer is rounded towards zero."""
    if not is_integral(left):
        return np.power(wide(left), wide(right))
    positive = np.power(left, np.where(right < 0, np.zeros_like(right), right))
    one = np.ones_like(left)
    # Only 1 and -1 have reciprocals that are integers.
    sign = np.where(right % 2 != 0, left, one)
    return np.where(right < 0, np.where(np.abs(left) == one, sign, np.zeros_like(left)), positive)
