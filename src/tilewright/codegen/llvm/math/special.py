"""erf, pow and the remaining elementary functions."""

from __future__ import annotations

import math

from tilewright.codegen.llvm.math.block import INTEGER_OF, Block, Value
from tilewright.codegen.llvm.math.exponential import (
    LN_2,
    LOG2_E,
    clamp,
    exp_in_range,
    exp_minus_one,
    power_of_two,
    round_to_integer,
)
from tilewright.codegen.llvm.math.logarithm import split, tail
from tilewright.codegen.llvm.math.pieces import Pieces, odd_by_pieces

ERF_NEAR = (
    7.875874871388078e-05, -0.000801686430349946, 0.005189087241888046, -0.02685421146452427,
    0.11283594369888306, -0.3761262595653534, 0.12837916612625122,
)  # fmt: skip
ERF_FAR = (
    -1.6386372863053111e-06, 4.6087447117315605e-05, -0.0005970529746264219, 0.004760747775435448,
    -0.02642437070608139, 0.11008568108081818, 0.6318202614784241, 1.1302367448806763, -0.0003209143760614097,
)  # fmt: skip
_ERF_PIECES = {
    16: Pieces(math.erf, count=16, step=17 / 64, degree=5, limit=3.9375),
    8: Pieces(math.erf, count=8, step=17 / 32, degree=7, limit=3.9375),
}
_INFINITY = float("inf")
_NAN = float("nan")


def erf(block: Block, x: Value) -> Value:
    """By pieces where a vector register can be a table; else in two ranges, of which each lane takes one."""
    pieces = _ERF_PIECES.get(block.lookup_size())
    return _erf_in_two_ranges(block, x) if pieces is None else odd_by_pieces(block, x, pieces)


def _erf_in_two_ranges(block: Block, x: Value) -> Value:
    """Below one, ``x + x p(x**2)``; above, up to 4, where it is 1, ``1 - exp(-q(x))`` with q(x) = -log(erfc(x))."""
    size = x.absolute()
    near = block.multiply_add(x, block.polynomial(x * x, ERF_NEAR), x)
    far_size = block.select(size > 4.0, 4.0, size)
    far = (1.0 - exp_in_range(block, -block.polynomial(far_size, ERF_FAR))).copysign(x)
    return block.select(size < 1.0, near, far)


def pow(block: Block, x: Value, y: Value) -> Value:
    """x to the power y, with C's special values: ``2**(y * log2 |x|)`` in float64, rounded to float32 at the end."""
    base, exponent = x.absolute().to_float("double"), y.to_float("double")
    f, whole = split(block, base)
    logarithm = whole + (tail(block, f) + f) * LOG2_E
    logarithm = block.select(base.equals(0.0), -_INFINITY, logarithm)
    logarithm = block.select(base.equals(_INFINITY), _INFINITY, logarithm)
    product = clamp(block, exponent * logarithm, -300.0, 300.0)
    count, rounded = round_to_integer(block, product, 1.0)
    fraction = exp_minus_one(block, (product - rounded) * LN_2)
    power = power_of_two(block, count, "double")
    result = block.multiply_add(fraction, power, power).to_float("float")
    result = block.select(x.absolute().equals(1.0), 1.0, result)
    truncated = block.intrinsic("trunc", y)
    is_integer = truncated.equals(y)
    half = y * 0.5
    is_odd = is_integer & block.intrinsic("trunc", half).differs(half)
    negative = x.bits() < 0
    result = block.select(negative & is_odd, -result, result)
    # A negative base with a fractional exponent has no power; zero and infinity have.
    undefined = (x < 0.0) & (is_integer ^ 1) & x.differs(-_INFINITY)
    result = block.select(undefined, _NAN, result)
    result = block.select(x.is_nan() | y.is_nan(), x + y, result)
    return block.select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def sqrt(block: Block, x: Value) -> Value:
    """The square root, correctly rounded."""
    return block.intrinsic("sqrt", x)


def rsqrt(block: Block, x: Value) -> Value:
    """One over the square root."""
    return 1.0 / block.intrinsic("sqrt", x)


def hypot(block: Block, x: Value, y: Value) -> Value:
    """The length of (x, y); in float64 nothing overflows."""
    a, b = x.to_float("double"), y.to_float("double")
    result = block.intrinsic("sqrt", a * a + b * b).to_float("float")
    infinite = x.absolute().equals(_INFINITY) | y.absolute().equals(_INFINITY)
    return block.select(infinite, _INFINITY, result)


def ldexp(block: Block, x: Value, count: Value) -> Value:
    """x times a power of two: exact in float64, rounded once."""
    limited = block.intrinsic("smax", block.intrinsic("smin", count, count.lift(400)), count.lift(-400))
    return (x.to_float("double") * power_of_two(block, limited.to_integer("i64"), "double")).to_float("float")


def nextafter(block: Block, x: Value, y: Value) -> Value:
    """The neighbour of x in the direction of y."""
    bits = x.bits()
    away = (y > x).equals(x > 0.0)
    moved = bits + block.select(away, block.constant(bits.element, 1), -1)
    sign_bit = 1 << (int(INTEGER_OF[x.element][1:]) - 1)
    smallest = (y.bits() & -sign_bit) | 1
    result = block.select(x.equals(0.0), smallest, moved).bitcast(x.element)
    result = block.select(x.equals(y), y, result)
    return block.select(x.is_nan() | y.is_nan(), x + y, result)


def fmod(block: Block, x: Value, y: Value) -> Value:
    """The remainder with the sign of x, exact."""
    kind = block.type_name(x.element)
    return block.emit(x.element, f"frem {kind} {x.operand}, {y.operand}")


def fma(block: Block, a: Value, b: Value, c: Value) -> Value:
    """a * b + c in one rounding; libm's where the target has no instruction."""
    return block.intrinsic("fma", a, b, c)


def copysign(block: Block, x: Value, y: Value) -> Value:
    """The magnitude of x with the sign of y."""
    return x.copysign(y)


def isnan(block: Block, x: Value) -> Value:
    """True for NaN."""
    return x.is_nan()


def isinf(block: Block, x: Value) -> Value:
    """True for both infinities."""
    return x.absolute().equals(_INFINITY)


def isfinite(block: Block, x: Value) -> Value:
    """True for numbers that are not infinite."""
    return x.absolute() < _INFINITY


def floor(block: Block, x: Value) -> Value:
    """The greatest integer not above."""
    return block.intrinsic("floor", x)


def ceil(block: Block, x: Value) -> Value:
    """The least integer not below."""
    return block.intrinsic("ceil", x)


def trunc(block: Block, x: Value) -> Value:
    """The integer next towards zero."""
    return block.intrinsic("trunc", x)


def nearest(block: Block, x: Value) -> Value:
    """The nearest integer, halves away from zero."""
    return block.intrinsic("round", x)


def nearbyint(block: Block, x: Value) -> Value:
    """The nearest integer, halves to even."""
    return block.intrinsic("nearbyint", x)
