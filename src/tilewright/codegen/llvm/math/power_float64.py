"""pow in float64.

The exponent multiplies the error of the base's logarithm, which must be right to more bits than a float64 has.
The base is ``2**e * m`` with ``m`` between sqrt(1/2) and sqrt(2). With ``s = (m - 1) / (m + 1)`` and ``z = s * s``,
the logarithm of ``m`` is ``2s (1 + z/3 + z**2 p(z))``, where all but the last term are pairs of numbers.
"""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.exponential import LN_2, format_of, nearest_power, scale
from tilewright.codegen.llvm.math.logarithm import split
from tilewright.codegen.llvm.math.pairs import Pair, fast_two_sum, multiply, two_product, two_sum

_THIRD, _THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17
_LOG2_E, _LOG2_E_LOW = 1.4426950408889634, 2.0355273740931033e-17
_LN_2_LOW = 2.3190468138462996e-17
_ATANH = (
    0.05862163530444755, 0.05853063232279337, 0.06667404399406274, 0.07692297443503587, 0.09090909168049924,
    0.11111111110826383, 0.14285714285714685, 0.2,
)  # fmt: skip
_INFINITY = float("inf")
_LIMIT = 1100.0
"""Two to more is infinite, to less than its negative zero."""


def _log2(block: Block, x: Value) -> Pair:
    """The logarithm to base two of a positive finite number."""
    f, exponent = split(block, x)
    below = two_sum(f, 2.0)
    s = f / below.high
    back = two_product(block, s, below.high)
    s_low = (((f - back.high) - back.low) - s * below.low) / below.high
    square = two_product(block, s, s)
    square = fast_two_sum(square.high, block.multiply_add(s + s, s_low, square.low))
    third = multiply(block, square, _THIRD, _THIRD_LOW)
    rest = (square.high * square.high) * block.polynomial(square.high, _ATANH)
    series = two_sum(third.high, rest + third.low)
    correction = multiply(block, Pair(s + s, s_low + s_low), series.high, series.low)
    natural = two_sum(s + s, correction.high)
    natural = fast_two_sum(natural.high, natural.low + (correction.low + (s_low + s_low)))
    binary = multiply(block, natural, _LOG2_E, _LOG2_E_LOW)
    whole = two_sum(exponent, binary.high)
    return fast_two_sum(whole.high, whole.low + binary.low)


def power(block: Block, x: Value, y: Value) -> Value:
    """``x**y`` of a base that is not negative: ``2**(y log2 x)``."""
    logarithm = _log2(block, x)
    high = block.select(x.equals(0.0), -_INFINITY, logarithm.high)
    high = block.select(x.equals(_INFINITY), _INFINITY, high)
    product = two_product(block, high, y)
    rest = block.multiply_add(logarithm.low, y, product.low)
    # What is out of range has no rest; NaN stays.
    beyond = product.high.absolute() > _LIMIT
    high = block.select(beyond, product.high.lift(_LIMIT).copysign(product.high), product.high)
    rest = block.select(beyond, 0.0, rest)
    whole = nearest_power(block, high, 1.0)
    return scale(block, _exp2_near_zero(block, two_sum(high - whole.whole, rest)), whole)


def _exp2_near_zero(block: Block, x: Pair) -> Value:
    """Two to a power of at most one half."""
    r = multiply(block, x, LN_2, _LN_2_LOW)
    near = fast_two_sum(r.high.lift(1.0), r.high)
    square = r.high * r.high
    return near.high + (
        near.low + block.multiply_add(square, block.polynomial(r.high, format_of(x.high).q), r.low)
    )
