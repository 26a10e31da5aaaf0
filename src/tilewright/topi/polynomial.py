"""Approximations of exp, tanh and erf in float32 by polynomials and quotients of them.

They trade a few units in the last place for speed on targets whose exact functions are slow. Other types use the exact
functions. The rational functions for tanh and erf are those that Eigen publishes (generic_fast_tanh_float, erf).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.tir import op

_LOG2_E = 1.4426950408889634
# ln 2 as a float32 with trailing zeros and the rest: the product of the first part with an exponent is exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
_EXP_LOW, _EXP_HIGH = -87.33654, 88.37626
# 1/k! adjusted for the interval of half a binade around zero.
_EXP_TERMS = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)

_TANH_LIMIT = 7.90531110763549805
_TANH_ODD = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_EVEN = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)

_ERF_LIMIT = 4.0
_ERF_ODD = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_EVEN = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def _constant(value: float) -> PrimExpr:
    return operators.const(value, "float32")


def _horner(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """The polynomial with these coefficients, the highest power first."""
    result = _constant(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + _constant(coefficient)
    return result


def _within(x: PrimExpr, low: float, high: float) -> PrimExpr:
    return operators.maximum(operators.minimum(x, _constant(high)), _constant(low))


def _power_of_two(exponent: PrimExpr) -> PrimExpr:
    return op.reinterpret("float32", operators.left_shift(exponent + 127, 23))


def fast_exp(value: PrimExpr) -> PrimExpr:
    """exp with a relative error below 2e-7; outside of the range of float32 it stays at the ends."""
    if value.dtype != "float32":
        return op.exp(value)
    x = _within(value, _EXP_LOW, _EXP_HIGH)
    exponent = op.floor(x * _constant(_LOG2_E) + _constant(0.5))
    rest = x - exponent * _constant(_LN2_HIGH) - exponent * _constant(_LN2_LOW)
    mantissa = _horner(rest, _EXP_TERMS) * rest * rest + rest + _constant(1.0)
    # The exponent runs from -126 to 128, one more than a float32 holds: each half of it is a factor of its own.
    whole = operators.cast("int32", exponent)
    half = operators.right_shift(whole, 1)
    return mantissa * _power_of_two(half) * _power_of_two(whole - half)


def fast_tanh(value: PrimExpr) -> PrimExpr:
    """tanh with an error below 5e-7."""
    if value.dtype != "float32":
        return op.tanh(value)
    x = _within(value, -_TANH_LIMIT, _TANH_LIMIT)
    square = x * x
    return x * _horner(square, _TANH_ODD) / _horner(square, _TANH_EVEN)


def fast_erf(value: PrimExpr) -> PrimExpr:
    """erf with an error below 5e-7."""
    if value.dtype != "float32":
        return op.erf(value)
    x = _within(value, -_ERF_LIMIT, _ERF_LIMIT)
    square = x * x
    return x * _horner(square, _ERF_ODD) / _horner(square, _ERF_EVEN)
