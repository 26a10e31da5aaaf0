"""Special functions of floats as Relay expressions: log-gamma, digamma and the inverse error function.

Each takes a tensor and its type. The error, relative to the exact value or to one, is below 1e-5 in float32 and 1e-9 in
float64; 16-bit floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Final

from tilewright import relay
from tilewright.relay.expr import Constant, const
from tilewright.relay.expr import ExprWithOp as Expr

_LANCZOS_SHIFT: Final = 7.0
_LANCZOS_FIRST: Final = 0.99999999999980993
_LANCZOS: Final = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""Lanczos' series of gamma, for a shift of seven: the sum of each over ``x + its number``."""

_ERFINV_CENTRE: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_TAILS: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
"""Giles' polynomials for the inverse error function, of ``w - 2.5`` and of ``sqrt(w) - 3``, where ``w`` is
``-log(1 - x * x)``, and the other where it is below and from five up."""
_TAIL_LEVELS: Final = 24


def _in_float32(function: Callable[[Expr, str], Expr]) -> Callable[[Expr, str], Expr]:
    """The function, which computes on 16-bit floats in float32."""

    @wraps(function)
    def computed(data: Expr, dtype: str) -> Expr:
        if dtype in ("float32", "float64"):
            return function(data, dtype)
        return relay.cast(function(relay.cast(data, "float32"), "float32"), dtype)

    return computed


@_in_float32
def lgamma(data: Expr, dtype: str) -> Expr:
    """The logarithm of the magnitude of gamma; infinite at zero and the negative integers."""
    one, half, number = _number(1, dtype), _number(0.5, dtype), _folded(data, dtype)
    shifted = number + _number(_LANCZOS_SHIFT + 0.5, dtype)
    total, _ = _lanczos(number, dtype)
    right = (number + half) * relay.log(shifted) - shifted + relay.log(total)
    right = right + _number(math.log(2 * math.pi) / 2, dtype)
    # On the left, by reflection. Only the fraction matters to the sine, and of integers it is zero.
    size = relay.abs(data)
    sine = relay.sin((size - relay.round(size)) * _number(math.pi, dtype))
    left = _number(math.log(math.pi), dtype) - relay.log(relay.abs(sine)) - right
    found = relay.where(_is_left(data, dtype), left, right)
    is_infinite = relay.equal(size, _number(math.inf, dtype))
    return relay.where(is_infinite, size * one, found)


@_in_float32
def digamma(data: Expr, dtype: str) -> Expr:
    """The derivative of the logarithm of gamma; not a number at the negative integers."""
    number = _folded(data, dtype)
    shifted = number + _number(_LANCZOS_SHIFT + 0.5, dtype)
    total, slope = _lanczos(number, dtype)
    right = relay.log(shifted) + slope / total - _number(_LANCZOS_SHIFT, dtype) / shifted
    whole = relay.round(data)
    tangent = relay.tan((data - whole) * _number(math.pi, dtype))
    left = right - _number(math.pi, dtype) / tangent
    zero = _number(0, dtype)
    is_pole = relay.logical_and(relay.equal(whole, data), relay.less(data, zero))
    found = relay.where(_is_left(data, dtype), left, right)
    return relay.where(is_pole, _number(math.nan, dtype), found)


@_in_float32
def erfinv(data: Expr, dtype: str) -> Expr:
    """What the error function is ``data`` of; infinite at one and minus one, and not a number beyond."""
    one = _number(1, dtype)
    measure = relay.negative(relay.log((one - data) * (one + data)))
    centre = _polynomial(measure - _number(2.5, dtype), _ERFINV_CENTRE, dtype)
    tails = _polynomial(relay.sqrt(measure) - _number(3, dtype), _ERFINV_TAILS, dtype)
    found = relay.where(relay.less(measure, _number(5, dtype)), centre, tails) * data
    if dtype == "float64":
        for _ in range(3):
            near, far = _centre_step(found, data, dtype), _tail_step(found, data, dtype)
            found = found + relay.where(relay.less(measure, _number(5, dtype)), near, far)
    is_end = relay.equal(relay.abs(data), one)
    return relay.where(is_end, data * _number(math.inf, dtype), found)


def _centre_step(found: Expr, data: Expr, dtype: str) -> Expr:
    """Newton's step towards where the error function is ``data``."""
    slope = relay.exp(relay.negative(found * found)) * _number(2 / math.sqrt(math.pi), dtype)
    return (data - relay.erf(found)) / slope


def _tail_step(found: Expr, data: Expr, dtype: str) -> Expr:
    """Newton's step towards where the logarithm of the complementary error function is that of ``1 - |data|``.

    ``erfc(x)`` is ``exp(-x * x) / (sqrt(pi) * k)``, with the continued fraction k = x + 1/2 / (x + 2/2 / (x + ...)).
    """
    size = relay.abs(found)
    fraction: Expr = size
    for level in range(_TAIL_LEVELS, 0, -1):
        fraction = size + _number(level / 2, dtype) / fraction
    excess = relay.log((_number(1, dtype) - relay.abs(data)) * fraction * _number(math.sqrt(math.pi), dtype))
    step = (relay.negative(excess) - size * size) / (_number(2, dtype) * fraction)
    return relay.where(relay.less(data, _number(0, dtype)), relay.negative(step), step)


def _number(value: float, dtype: str) -> Constant:
    return const(value, dtype)


def _is_left(data: Expr, dtype: str) -> Expr:
    """Where the series does not hold."""
    return relay.less(data, _number(0.5, dtype))


def _folded(data: Expr, dtype: str) -> Expr:
    """``x - 1``, or by reflection ``-x``: the series is that of gamma of one more."""
    return relay.where(_is_left(data, dtype), relay.negative(data), data - _number(1, dtype))


def _lanczos(number: Expr, dtype: str) -> tuple[Expr, Expr]:
    """The series and its derivative."""
    total: Expr = _number(_LANCZOS_FIRST, dtype)
    slope: Expr = _number(0, dtype)
    for place, factor in enumerate(_LANCZOS, 1):
        below = number + _number(place, dtype)
        term = _number(factor, dtype) / below
        total, slope = total + term, slope - term / below
    return total, slope


def _polynomial(data: Expr, factors: Sequence[float], dtype: str) -> Expr:
    """By Horner's rule, the highest power first."""
    total: Expr = _number(factors[0], dtype)
    for factor in factors[1:]:
        total = total * data + _number(factor, dtype)
    return total
