"""The arithmetic intrinsics.

A function of floats is computed in double precision and rounded once to its type: results of float32 and smaller types
are correctly rounded except in very rare cases, which makes them a reference for approximations. All functions work on
scalars; a call on vectors applies them lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tilewright.ir.expr import wrap_integer
from tilewright.support.dtype import DataType
from tilewright.support.numbers import shift_left, shift_right


def _sigmoid(x: float) -> Any:
    """The logistic function, without overflow on either side."""
    return 1.0 / (1.0 + np.exp(-x)) if x >= 0 else np.exp(x) / (1.0 + np.exp(x))


def round_half_away(x: float) -> Any:
    """To the nearest integer, halves away from zero. A sum with a half would round up what lies just below it."""
    whole = np.trunc(x)
    return whole + np.copysign(1.0, x) if abs(x - whole) >= 0.5 else np.copysign(whole, x)


UNARY: Final[dict[str, Callable[[float], Any]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "erf": math.erf,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tan": np.tan,
    "cos": np.cos,
    "cosh": np.cosh,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "sin": np.sin,
    "sinh": np.sinh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": round_half_away,
    "nearbyint": np.rint,
    "fabs": np.abs,
}
"""Functions of one float, in double precision."""

BINARY: Final[dict[str, Callable[[float, float], Any]]] = {
    "atan2": np.arctan2,
    "pow": np.power,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
}
"""Functions of two floats, in double precision."""

TESTS: Final[dict[str, Callable[[float], Any]]] = {
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
}
"""Questions about a float."""

BITWISE: Final[dict[str, Callable[[int, int], int]]] = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}
"""Functions of two integers; the result is wrapped into the type."""

SHIFTS: Final[dict[str, Callable[[int, int, int], int]]] = {
    "shift_left": shift_left,
    "shift_right": shift_right,
}
"""Functions of the number of bits, an integer and a count; the result is wrapped into the type."""


def count_leading_zeros(dtype: DataType, value: int) -> int:
    """Zero bits above the highest one; all of them for zero."""
    return dtype.bits - (value & ((1 << dtype.bits) - 1)).bit_length()


def population_count(dtype: DataType, value: int) -> int:
    """How many bits are one."""
    return (value & ((1 << dtype.bits) - 1)).bit_count()


def multiply_shift(dtype: DataType, x: int, y: int, fraction_bits: int, shift: int) -> int:
    """``round(x * y * 2^-fraction_bits * 2^shift)``, halves up: how quantised networks scale by a fixed-point number.

    A positive shift is applied to ``x`` before the product, a negative one together with the rounding.
    """
    left, right = max(shift, 0), max(-shift, 0)
    total = fraction_bits + right
    product = (x << left) * y
    return wrap_integer(dtype, (product + (1 << (total - 1) if total else 0)) >> total)


def fused_multiply_add(a: Any, b: Any, c: Any) -> float:
    """``a * b + c`` of finite doubles rounded once, through exact fractions."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return float(a) * float(b) + float(c)
    numerator_a, denominator_a = float(a).as_integer_ratio()
    numerator_b, denominator_b = float(b).as_integer_ratio()
    numerator_c, denominator_c = float(c).as_integer_ratio()
    denominator = denominator_a * denominator_b
    numerator = numerator_a * numerator_b * denominator_c + numerator_c * denominator
    if numerator == 0:
        return float(a) * float(b) + float(c)
    try:
        return numerator / (denominator * denominator_c)
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
