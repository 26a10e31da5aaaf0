"""Logarithms and inverse hyperbolic functions.

``x = 2**e * (1 + f)`` with ``1 + f`` between sqrt(1/2) and sqrt(2). In float32, ``log(1 + f) = f - f**2/2 + f**3
p(f)``; in float64, ``s = f / (2 + f)`` and ``log(1 + f) = f - (f**2/2 - s (f**2/2 + s**2 r(s**2)))``. ``e * ln 2``
is added in two parts.
"""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.exponential import LN_2, format_of, power_of_two

_P32 = (
    0.06972518563270569, -0.11481212079524994, 0.1168578490614891, -0.1242552325129509, 0.14249007403850555,
    -0.1666780710220337, 0.20000717043876648, -0.2499999701976776, 0.3333333134651184,
)  # fmt: skip
_R64 = (
    0.13088034850927555, 0.13268638369266825, 0.15386244737621665, 0.18181795547521137,
    0.22222222392581045, 0.28571428570799784, 0.40000000000000885, 0.6666666666666666,
)  # fmt: skip
_SQRT_HALF = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
_SMALLEST_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}
_INFINITY = float("inf")
_NAN = float("nan")
_LOG2_E_REST = 0.4426950408889634
"""log2(e) - 1: the one is added without a rounding."""
_LOG10_E_HIGH, _LOG10_E_LOW = 0.4375, -3.2055180967481724e-03


def split(block: Block, x: Value) -> tuple[Value, Value]:
    """``f, e`` of a positive finite number; ``e`` as a float."""
    form = format_of(x)
    tiny = x < _SMALLEST_NORMAL[x.element]
    lifted = block.select(tiny, x * 2.0**form.mantissa_bits, x)
    bits = lifted.bits()
    exponent = (bits - _SQRT_HALF[x.element]).shift_right_signed(form.mantissa_bits)
    mantissa = (bits - exponent.shift_left(form.mantissa_bits)).bitcast(x.element)
    exponent = block.select(tiny, exponent - form.mantissa_bits, exponent)
    return mantissa - 1.0, exponent_as_float(block, exponent, x.element)


def exponent_as_float(block: Block, exponent: Value, element: str) -> Value:
    """A small integer as a float; 64-bit integers go through 32 bits, for which every target has a conversion."""
    return exponent.to_integer("i32").to_float(element)


def tail(block: Block, f: Value) -> Value:
    """``log(1 + f) - f``."""
    square = f * f
    if f.element == "float":
        cubic = block.polynomial(f, _P32) * (square * f)
        return block.multiply_add(square, -0.5, cubic)
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    return s * (half + z * block.polynomial(z, _R64)) - half


def specials(block: Block, x: Value, result: Value) -> Value:
    """The logarithm's values at zero, infinity, NaN and below zero."""
    result = block.select(x.equals(0.0), -_INFINITY, result)
    result = block.select(x < 0.0, _NAN, result)
    result = block.select(x.equals(_INFINITY), x, result)
    return block.select(x.is_nan(), x, result)


def _combine(block: Block, f: Value, exponent: Value) -> Value:
    """``log(1 + f) + e * ln 2``."""
    form = format_of(f)
    rest = block.multiply_add(exponent, form.ln2_low, tail(block, f))
    return block.multiply_add(exponent, form.ln2_high, f + rest)


def log(block: Block, x: Value) -> Value:
    """The natural logarithm."""
    return specials(block, x, _combine(block, *split(block, x)))


def log2(block: Block, x: Value) -> Value:
    """The logarithm to base two."""
    f, exponent = split(block, x)
    rest = tail(block, f)
    small = block.multiply_add(f, _LOG2_E_REST, rest * _LOG2_E_REST)
    return specials(block, x, ((small + rest) + f) + exponent)


def log10(block: Block, x: Value) -> Value:
    """The logarithm to base ten."""
    form = format_of(x)
    f, exponent = split(block, x)
    rest = tail(block, f)
    small = block.multiply_add(exponent, form.log10_2_low, (f + rest) * _LOG10_E_LOW)
    small = block.multiply_add(rest, _LOG10_E_HIGH, small)
    small = block.multiply_add(f, _LOG10_E_HIGH, small)
    return specials(block, x, block.multiply_add(exponent, form.log10_2_high, small))


def log1p(block: Block, x: Value) -> Value:
    """log(1 + x): the exponent comes from the rounded sum, the mantissa from ``x`` itself, so that nothing is lost."""
    form = format_of(x)
    total = x + 1.0
    exponent = (total.bits() - _SQRT_HALF[x.element]).shift_right_signed(form.mantissa_bits)
    inverse = power_of_two(block, -exponent, x.element)
    exact = block.multiply_add(x, inverse, inverse - 1.0)
    # Where one more is lost in the sum, the sum is x itself, and 2**-e may be denormal.
    rounded = (total.bits() - exponent.shift_left(form.mantissa_bits)).bitcast(x.element) - 1.0
    f = block.select(exponent > form.mantissa_bits + 1, rounded, exact)
    result = _combine(block, f, exponent_as_float(block, exponent, x.element))
    result = block.select(x.equals(-1.0), -_INFINITY, result)
    result = block.select(x < -1.0, _NAN, result)
    result = block.select(x.equals(_INFINITY), x, result)
    result = block.select(x.equals(0.0), x, result)
    return block.select(x.is_nan(), x, result)


def _large(x: Value) -> float:
    """Beyond this, squares might overflow, and one more or less has long made no difference."""
    return 2.0 ** (format_of(x).bias // 2 - 3)


def asinh(block: Block, x: Value) -> Value:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))) on the magnitude; log(2a) where the square would overflow."""
    size = x.absolute()
    square = size * size
    root = block.intrinsic("sqrt", square + 1.0)
    large = size > _large(x)
    result = log1p(block, block.select(large, size, size + square / (root + 1.0)))
    return block.select(large, result + LN_2, result).copysign(x)


def acosh(block: Block, x: Value) -> Value:
    """log1p(t + sqrt(2t + t**2)) with t = x - 1."""
    t = x - 1.0
    large = x > _large(x)
    root = block.intrinsic("sqrt", block.multiply_add(t, t, t + t))
    result = log1p(block, block.select(large, x, t + root))
    result = block.select(large, result + LN_2, result)
    return block.select(x < 1.0, _NAN, result)


def atanh(block: Block, x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2 on the magnitude."""
    size = x.absolute()
    return (log1p(block, (size + size) / (1.0 - size)) * 0.5).copysign(x)
