"""Exponentials and functions derived from them: exp, exp2, exp10, sigmoid, tanh, sinh, cosh.

``x`` is split into ``n * ln 2 + r`` with ``|r| <= ln 2 / 2``; ``exp(r) - 1 = r + r**2 q(r)`` with a polynomial ``q``
fitted for minimal relative error of exp. The power of two is applied by AVX-512's scaling instruction, or in two steps,
so that denormal results are rounded once and overflow gives infinity. ``n`` is read from the bits of a sum with a large
constant, which is defined for every input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.pieces import Pieces, odd_by_pieces

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
LN_10 = 2.302585092994046
LOG2_10 = 3.321928094887362
_TANH_PIECES = Pieces(math.tanh, count=16, step=39 / 64, degree=7, limit=9.25)


@dataclass(frozen=True)
class Format:
    """The constants of one floating-point format."""

    mantissa_bits: int
    bias: int
    magic: float
    ln2_high: float
    ln2_low: float
    log10_2_high: float
    log10_2_low: float
    lowest: float
    highest: float
    hyperbolic_highest: float
    tanh_one: float
    q: tuple[float, ...]


FORMATS = {
    # ln2_high has so few bits that its product with n is exact, FMA or not.
    "float": Format(
        23, 127, 1.5 * 2**23, 0.693359375, -2.1219444005469057e-04, 0.30078125, 2.4874566398119521e-04,
        -105.0, 89.0, 89.5, 9.1,
        (
            0.001382073387503624, 0.008368677459657192, 0.04166826605796814, 0.1666652113199234,
            0.4999999403953552,
        ),
    ),
    "double": Format(
        52, 1023, 1.5 * 2**52, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
        3.01029995663611771306e-01, 3.69423907715893078616e-13, -746.0, 710.0, 710.5, 19.5,
        (
            1.60866903974611e-10, 2.0918231419370054e-09, 2.5052070925322046e-08, 2.755726302557563e-07,
            2.755731924737679e-06, 2.4801587336679385e-05, 0.00019841269841263238, 0.0013888888888878984,
            0.008333333333333333, 0.04166666666666668, 0.16666666666666666, 0.5,
        ),
    ),
}  # fmt: skip


def format_of(x: Value) -> Format:
    """The constants of a value's format."""
    return FORMATS[x.element]


def round_to_integer(block: Block, x: Value, factor: float) -> tuple[Value, Value]:
    """The integer nearest to ``x * factor``, as an integer and as a float; the product must be within the mantissa."""
    magic = format_of(x).magic
    shifted = block.multiply_add(x, factor, magic)
    count = shifted.bits() - x.lift(magic).bits()
    return count, shifted - magic


def power_of_two(block: Block, count: Value, element: str) -> Value:
    """Two to an integer power that is in the range of normal numbers."""
    form = FORMATS[element]
    return (count + form.bias).shift_left(form.mantissa_bits).bitcast(element)


@dataclass(frozen=True)
class Power:
    """Two to the power n: ``whole`` is n as a float, and the low bits of ``shifted`` are n plus twice the bias."""

    whole: Value
    shifted: Value


def nearest_power(block: Block, x: Value, factor: float) -> Power:
    """The power of two for the integer nearest to ``x * factor``, which is in the range of the format's exponents."""
    form = format_of(x)
    magic = form.magic + 2 * form.bias
    shifted = block.multiply_add(x, factor, magic)
    return Power(shifted - magic, shifted)


def scale(block: Block, y: Value, power: Power) -> Value:
    """``y * 2**n``, rounded once even if the result is denormal."""
    if block.has_scalef(y):
        return block.scalef(y, power.whole)
    # n + 2 bias is the sum of two exponents with the bias in each; what is above them falls out at the top.
    digits, bits = format_of(y).mantissa_bits, power.shifted.bits()
    half = bits.shift_right(1)
    first, second = half.shift_left(digits), (bits - half).shift_left(digits)
    return y * first.bitcast(y.element) * second.bitcast(y.element)


def clamp(block: Block, x: Value, lowest: float, highest: float) -> Value:
    """``x`` within bounds; NaN stays."""
    x = block.select(x < lowest, lowest, x)
    return block.select(x > highest, highest, x)


def remainder(block: Block, x: Value, whole: Value) -> Value:
    """``x - whole * ln 2``."""
    form = format_of(x)
    r = block.multiply_add(whole, -form.ln2_high, x)
    return block.multiply_add(whole, -form.ln2_low, r)


def exp_minus_one(block: Block, r: Value) -> Value:
    """``exp(r) - 1`` for ``|r| <= ln 2 / 2``."""
    return block.multiply_add(r * r, block.polynomial(r, format_of(r).q), r)


def exp_near_zero(block: Block, r: Value) -> Value:
    """``exp(r)`` for ``|r| <= ln 2 / 2``."""
    if not block.has_fma:
        # Horner's last two steps would round products that are near one.
        return exp_minus_one(block, r) + 1.0
    return block.polynomial(r, (*format_of(r).q, 1.0, 1.0))


def exp_in_range(block: Block, x: Value) -> Value:
    """``exp(x)`` for x between the format's ``lowest`` and ``highest``, or NaN."""
    power = nearest_power(block, x, LOG2_E)
    return scale(block, exp_near_zero(block, remainder(block, x, power.whole)), power)


def exp(block: Block, x: Value) -> Value:
    """e to the power x."""
    form = format_of(x)
    return exp_in_range(block, clamp(block, x, form.lowest, form.highest))


def exp2(block: Block, x: Value) -> Value:
    """Two to the power x."""
    form = format_of(x)
    x = clamp(block, x, form.lowest * LOG2_E, form.highest * LOG2_E)
    power = nearest_power(block, x, 1.0)
    return scale(block, exp_near_zero(block, (x - power.whole) * LN_2), power)


def exp10(block: Block, x: Value) -> Value:
    """Ten to the power x."""
    form = format_of(x)
    x = clamp(block, x, form.lowest / LN_10, form.highest / LN_10)
    power = nearest_power(block, x, LOG2_10)
    r = block.multiply_add(power.whole, -form.log10_2_high, x)
    r = block.multiply_add(power.whole, -form.log10_2_low, r)
    # r * ln 10 in two parts: the rounding of ln 10 alone would cost half a unit.
    high = r.lift(2.25)
    return scale(block, exp_near_zero(block, block.multiply_add(r, high, r * (LN_10 - 2.25))), power)


def sigmoid(block: Block, x: Value) -> Value:
    """1 / (1 + exp(-x)), also where exp(-x) would overflow."""
    size, lowest = -x.absolute(), format_of(x).lowest
    tail = exp_in_range(block, block.select(size < lowest, lowest, size))
    return block.select(x < 0.0, tail, 1.0) / (tail + 1.0)


def _exp_parts(block: Block, x: Value, exponent: int = 0) -> tuple[Value, Value]:
    """``y, p`` such that ``exp(x) * 2**exponent = (1 + y) * p``; p must be a normal number."""
    form = format_of(x)
    magic = form.magic + form.bias + exponent
    shifted = block.multiply_add(x, LOG2_E, magic)
    power = shifted.bits().shift_left(form.mantissa_bits).bitcast(x.element)
    return exp_minus_one(block, remainder(block, x, shifted - magic)), power


def tanh(block: Block, x: Value) -> Value:
    """By pieces where a register holds sixteen numbers; else expm1(2x) / (expm1(2x) + 2) on the magnitude."""
    if x.element == "float" and block.lookup_size() == _TANH_PIECES.count:
        return odd_by_pieces(block, x, _TANH_PIECES)
    size = x.absolute()
    size = block.select(size > format_of(x).tanh_one, format_of(x).tanh_one, size)
    y, power = _exp_parts(block, size + size)
    shifted = block.multiply_add(power, y, power - 1.0)
    return (shifted / (shifted + 2.0)).copysign(x)


def _quarter_exp(block: Block, x: Value) -> tuple[Value, Value]:
    """``y, p`` such that ``exp(|x|) / 4 = (1 + y) * p``; a quarter overflows after the result does."""
    highest = format_of(x).hyperbolic_highest
    size = x.absolute()
    return _exp_parts(block, block.select(size > highest, highest, size), -2)


def sinh(block: Block, x: Value) -> Value:
    """With ``w = expm1(|x|) / 2``: w + w / (2w + 1)."""
    y, power = _quarter_exp(block, x)
    quarter = block.multiply_add(power, y, power - 0.25)
    half = quarter + quarter
    # The second term is w / (2w + 1) with both sides halved: w may be infinite, its half never is.
    return (half + quarter / (half + 0.5)).copysign(x)


def cosh(block: Block, x: Value) -> Value:
    """exp(|x|) / 2 + exp(-|x|) / 2."""
    y, power = _quarter_exp(block, x)
    quarter = block.multiply_add(power, y, power)
    return (quarter + quarter) + quarter.lift(0.125) / quarter
