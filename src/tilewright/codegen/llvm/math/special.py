"""erf, pow and the remaining elementary functions."""

from __future__ import annotations

import math

from tilewright.codegen.llvm.math import power_float64
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
_ERF_NEAR_64 = (
    -4.2309458242933425e-12, 8.70904512905176e-11, -1.2164560057283045e-09, 1.4792401209404742e-08,
    -1.6364642158167608e-07, 1.6462045441468418e-06, -1.4925647567519332e-05, 0.00012055332902888736,
    -0.000854832702193483, 0.0052239776254232985, -0.02686617064512984, 0.1128379167095512, -0.37612638903183754,
    0.1283791670955126,
)  # fmt: skip
_ERF_FAR_64 = (
    -1.030444736909105e-12, 2.860702617702203e-11, -3.6598911474976683e-10, 2.849466129562004e-09,
    -1.4848914513640022e-08, 5.1849130589496125e-08, -9.713411679743897e-08, -1.4354265251831498e-07,
    2.0605719065605086e-06, -9.609611475948938e-06, 2.715957746525449e-05, -2.6278095661219443e-05,
    -0.0002373224075046548, 0.0019779025510096625, -0.010033825371916213, 0.041561098041590756, 0.8431072563586866,
    2.638967514234788, 1.8496055099332482,
)  # fmt: skip
_ERF_END = 6.0
_ERF_PIECES = {
    16: Pieces(math.erf, count=16, step=17 / 64, degree=5, limit=3.9375),
    8: Pieces(math.erf, count=8, step=17 / 32, degree=7, limit=3.9375),
}
_LARGEST_POWER, _SMALLEST_POWER = 1023, -1022
_STEP_DOWN = -1022 + 53
"""Small enough a step that what it leaves of a mantissa is right, or far below the smallest number."""
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


def _power_float32(block: Block, x: Value, y: Value) -> Value:
    """``x**y`` of a base that is not negative: ``2**(y * log2 x)`` in float64, rounded to float32 at the end."""
    base, exponent = x.to_float("double"), y.to_float("double")
    f, whole = split(block, base)
    logarithm = whole + (tail(block, f) + f) * LOG2_E
    logarithm = block.select(base.equals(0.0), -_INFINITY, logarithm)
    logarithm = block.select(base.equals(_INFINITY), _INFINITY, logarithm)
    product = clamp(block, exponent * logarithm, -300.0, 300.0)
    count, rounded = round_to_integer(block, product, 1.0)
    fraction = exp_minus_one(block, (product - rounded) * LN_2)
    power = power_of_two(block, count, "double")
    return block.multiply_add(fraction, power, power).to_float("float")


def pow(block: Block, x: Value, y: Value) -> Value:
    """x to the power y, with C's special values."""
    power = _power_float32 if x.element == "float" else power_float64.power
    result = power(block, x.absolute(), y)
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


def erf_float64(block: Block, x: Value) -> Value:
    """In two ranges, as in float32. The polynomial of the far one is around 1, where its error counts most."""
    size = x.absolute()
    near = block.multiply_add(x, block.polynomial(x * x, _ERF_NEAR_64), x)
    far_size = block.select(size > _ERF_END, _ERF_END, size)
    logarithm = block.polynomial(far_size - 1.0, _ERF_FAR_64)
    far = (1.0 - exp_in_range(block, -logarithm)).copysign(x)
    return block.select(size < 1.0, near, far)


def sqrt(block: Block, x: Value) -> Value:
    """The square root, correctly rounded."""
    return block.intrinsic("sqrt", x)


def rsqrt(block: Block, x: Value) -> Value:
    """One over the square root."""
    return 1.0 / block.intrinsic("sqrt", x)


def hypot(block: Block, x: Value, y: Value) -> Value:
    """The length of (x, y); in float64 the squares of float32 numbers do not overflow."""
    a, b = x.to_float("double"), y.to_float("double")
    result = block.intrinsic("sqrt", a * a + b * b).to_float("float")
    return _infinite_length(block, x, y, result)


def hypot_float64(block: Block, x: Value, y: Value) -> Value:
    """The length of (x, y), scaled to where squares neither overflow nor vanish."""
    a, b = x.absolute(), y.absolute()
    steep = a < b
    long, short = block.select(steep, b, a), block.select(steep, a, b)
    large, small = long > 2.0**500, long < 2.0**-500
    scale = block.select(large, 2.0**-600, block.select(small, long.lift(2.0**600), 1.0))
    back = block.select(large, 2.0**600, block.select(small, long.lift(2.0**-600), 1.0))
    long, short = long * scale, short * scale
    root = block.intrinsic("sqrt", block.multiply_add(long, long, short * short))
    return _infinite_length(block, x, y, root * back)


def _infinite_length(block: Block, x: Value, y: Value, result: Value) -> Value:
    infinite = x.absolute().equals(_INFINITY) | y.absolute().equals(_INFINITY)
    return block.select(infinite, _INFINITY, result)


def ldexp(block: Block, x: Value, count: Value) -> Value:
    """x times a power of two: exact in float64, rounded once."""
    limited = block.intrinsic("smax", block.intrinsic("smin", count, count.lift(400)), count.lift(-400))
    return (x.to_float("double") * power_of_two(block, limited.to_integer("i64"), "double")).to_float("float")


def ldexp_float64(block: Block, x: Value, count: Value) -> Value:
    """x times a power of two, in three steps of which only the last may round: what comes before it either stays a
    normal number or ends at zero."""
    for _ in range(2):
        up, down = count > _LARGEST_POWER, count < _SMALLEST_POWER
        step = block.select(up, _LARGEST_POWER, block.select(down, _STEP_DOWN, block.constant("i32", 0)))
        x = x * power_of_two(block, step.to_integer("i64"), "double")
        count = block.intrinsic("ssub.sat", count, step)
    limited = block.intrinsic(
        "smax", block.intrinsic("smin", count, count.lift(_LARGEST_POWER)), count.lift(_SMALLEST_POWER)
    )
    return x * power_of_two(block, limited.to_integer("i64"), "double")


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
