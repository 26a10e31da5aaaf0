"""Numbers of twice the precision: an unevaluated sum of two floats, of which the second is what the first lost."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.llvm.math.block import Block, Operand, Value

_SPLITTER = {"float": 2.0**12 + 1.0, "double": 2.0**27 + 1.0}
"""A product with this rounds away the lower half of a mantissa."""


@dataclass(frozen=True)
class Pair:
    """``high + low``, where ``low`` is at most half a unit in the last place of ``high``."""

    high: Value
    low: Value


def two_sum(a: Value, b: Operand) -> Pair:
    """``a + b`` without loss."""
    total = a + b
    from_b = total - a
    from_a = total - from_b
    return Pair(total, (a - from_a) + (a.lift(b) - from_b))


def fast_two_sum(a: Value, b: Value) -> Pair:
    """``a + b`` without loss, where ``a`` is zero or not the smaller one."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(block: Block, a: Value, b: Operand) -> Pair:
    """``a * b`` without loss, where halves of the factors neither overflow nor vanish."""
    product, other = a * b, a.lift(b)
    if block.has_fma:
        return Pair(product, block.fma(a, other, -product))
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(other)
    rest = ((a_high * b_high - product) + a_high * b_low) + a_low * b_high
    return Pair(product, rest + a_low * b_low)


def _halves(a: Value) -> tuple[Value, Value]:
    """The upper and the lower half of the mantissa."""
    shifted = a * _SPLITTER[a.element]
    high = shifted - (shifted - a)
    return high, a - high


def multiply(block: Block, a: Pair, high: Operand, low: Operand) -> Pair:
    """The product of two pairs."""
    product = two_product(block, a.high, high)
    rest = block.multiply_add(a.high, low, block.multiply_add(a.low, high, product.low))
    return fast_two_sum(product.high, rest)
