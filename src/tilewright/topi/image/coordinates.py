"""Where a pixel of the output lies in the input: exactly, as a fraction, wherever the sizes decide it.

A fraction of integers has an exact floor and an exact nearest integer, so that no rounding of the scale moves a pixel.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from tilewright import te, tir
from tilewright.ir.operators import maximum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.topi.utils import get_const_tuple

ROUNDING = ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


class Coordinate(Protocol):
    """A position along an axis of the input."""

    def floor(self) -> Any:
        """The integer below."""

    def fraction(self, dtype: str) -> Any:
        """How far it lies above that integer."""

    def nearest(self, rounding: str) -> Any:
        """The integer that a rounding method takes."""

    def outside(self, size: Any) -> Any:
        """True where it lies beyond the first or the last pixel."""


class Rational:
    """``numerator / denominator`` of integers; the denominator is positive."""

    def __init__(self, numerator: Any, denominator: Any) -> None:
        self.numerator, self.denominator = numerator, denominator

    def floor(self) -> Any:
        return self.numerator // self.denominator

    def fraction(self, dtype: str) -> Any:
        rest = self.numerator % self.denominator
        return rest.astype(dtype) / tir.Cast(dtype, self.denominator)

    def nearest(self, rounding: str) -> Any:
        over, under = self.numerator, self.denominator
        if rounding == "floor":
            return over // under
        if rounding == "ceil":
            return (over + under - 1) // under
        if rounding == "round_prefer_floor":
            return (2 * over + under - 1) // (2 * under)
        # Below zero a half would go the other way in "round", where every result is clipped to the first pixel.
        return (2 * over + under) // (2 * under)

    def outside(self, size: Any) -> Any:
        return tir.any(self.numerator < 0, self.numerator > (size - 1) * self.denominator)


class Real:
    """A floating-point position, where the program's input decides it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def floor(self) -> Any:
        return te.floor(self.value).astype("int32")

    def fraction(self, dtype: str) -> Any:
        return (self.value - te.floor(self.value)).astype(dtype)

    def nearest(self, rounding: str) -> Any:
        half = tir.const(0.5, self.value.dtype)
        rounded = {
            "floor": lambda: te.floor(self.value),
            "ceil": lambda: te.ceil(self.value),
            "round": lambda: te.round(self.value),
            "round_prefer_floor": lambda: te.ceil(self.value - half),
            "round_prefer_ceil": lambda: te.floor(self.value + half),
        }[rounding]()
        return rounded.astype("int32")

    def outside(self, size: Any) -> Any:
        last = tir.Cast(self.value.dtype, size - 1)
        return tir.any(self.value < 0, self.value > last)


def coordinate(index: Any, size: Any, target: Any, mode: str) -> Rational:
    """Where pixel ``index`` of ``target`` pixels lies among ``size``, by a mode that needs no region."""
    known_size, known_target = get_const_tuple([size, target])
    if mode in ("half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn"):
        start = 0 if mode == "tf_half_pixel_for_nn" else known_target
        if mode == "pytorch_half_pixel" and not isinstance(known_target, int):
            numerator = tir.Select(
                known_target > 1, (2 * index + 1) * known_size - start, tir.const(0, "int32")
            )
            return Rational(numerator, 2 * known_target)
        if mode == "pytorch_half_pixel" and known_target == 1:
            return Rational(index * 0, 1)
        return _reduced(2 * index + 1, known_size, start, 2 * known_target)
    if mode == "align_corners":
        if isinstance(known_target, int):
            return _reduced(index, known_size - 1, 0, max(known_target - 1, 1))
        return Rational(index * (known_size - 1), maximum(known_target - 1, 1))
    if mode == "asymmetric":
        return _reduced(index, known_size, 0, known_target)
    raise OpAttributeInvalid(f"a coordinate transformation is one of {', '.join(MODES)}, not {mode!r}")


def _reduced(index: Any, factor: Any, start: Any, denominator: Any) -> Rational:
    """``(index * factor - start) / denominator``, without common factors where all are constants."""
    if isinstance(factor, int) and isinstance(start, int) and isinstance(denominator, int):
        common = math.gcd(factor, start, denominator)
        return Rational(index * (factor // common) - start // common, denominator // common)
    return Rational(index * factor - start, denominator)


def coordinate_in_region(index: Any, size: Any, target: Any, begin: Any, end: Any) -> Real:
    """Where pixel ``index`` of ``target`` lies in the part from ``begin`` to ``end`` of the input, in 0 to 1."""
    kind = begin.dtype
    last = tir.Cast(kind, size - 1)
    middle = tir.const(0.5, kind) * (begin + end) * last
    (count,) = get_const_tuple([target])
    if isinstance(count, int) and count <= 1:
        return Real(middle)
    # Weighted by whole numbers, both ends of the region are met exactly: the last pixel of all is never outside.
    both = begin * tir.Cast(kind, target - 1 - index) + end * tir.Cast(kind, index)
    value = both * last / tir.Cast(kind, target - 1)
    return Real(value if isinstance(count, int) else tir.if_then_else(target > 1, value, middle))
