"""Element-wise operators of one and two tensors: arithmetic, comparisons, bits and mathematical functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.dtypes import category, is_floating
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.registry import converter

# Functions of one tensor


def _floating(names: tuple[str, ...], build: Callable[[Expr], Expr]) -> None:
    """A function whose results are floating-point numbers, also of integers."""

    @converter(*names)
    def convert(node: TorchNode, input: Operand) -> Expr:
        return build(node.floating(input))


def _same(names: tuple[str, ...], build: Callable[[Expr], Expr], skip_integers: bool = False) -> None:
    """A function whose results are of the type of its argument; some leave integers as they are."""

    @converter(*names)
    def convert(node: TorchNode, input: Operand) -> Expr:
        data = node.tensor(input)
        return data if skip_integers and node.is_integral(data) else build(data)


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "log10",
              "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"):  # fmt: skip
    _floating((f"aten::{_name}",), getattr(relay, _name))
_floating(("aten::arccos",), relay.acos)
_floating(("aten::arccosh",), relay.acosh)
_floating(("aten::arcsin",), relay.asin)
_floating(("aten::arcsinh",), relay.asinh)
_floating(("aten::arctan",), relay.atan)
_floating(("aten::arctanh",), relay.atanh)
_floating(("aten::special_expit",), relay.sigmoid)
_floating(("aten::special_erf",), relay.erf)
_same(("aten::ceil",), relay.ceil, skip_integers=True)
_same(("aten::floor",), relay.floor, skip_integers=True)
_same(("aten::trunc", "aten::fix"), relay.trunc, skip_integers=True)
_same(("aten::abs", "aten::absolute"), relay.abs)


@converter("aten::neg", "aten::negative")
def neg(node: TorchNode, input: Operand) -> Expr:
    """The negative."""
    return relay.negative(node.tensor(input))


@converter("aten::reciprocal")
def reciprocal(node: TorchNode, input: Expr) -> Expr:
    """One over the tensor."""
    data = node.floating(input)
    return relay.divide(node.constant(1.0, data), data)


@converter("aten::square")
def square(node: TorchNode, input: Expr) -> Expr:
    """The square."""
    data = node.cast(input, "int64") if node.dtype(input) == "bool" else input
    return relay.multiply(data, data)


@converter("aten::positive", "aten::real", "aten::conj", "aten::resolve_conj", "aten::resolve_neg",
           "aten::conj_physical", "aten::conj_physical_")  # fmt: skip
def positive(node: TorchNode, input: Expr) -> Expr:
    """The tensor itself: there are no complex ones."""
    return input


@converter("aten::sign", "aten::sgn")
def sign(node: TorchNode, input: Expr) -> Expr:
    """-1, 0 or 1; NaN has the sign 0."""
    if node.dtype(input) == "bool":
        return input
    zero = node.constant(0, input)
    positive_part = node.cast(relay.greater(input, zero), node.dtype(input))
    return relay.subtract(positive_part, node.cast(relay.less(input, zero), node.dtype(input)))


@converter("aten::frac")
def frac(node: TorchNode, input: Expr) -> Expr:
    """What is after the point, with the sign of the whole."""
    return relay.subtract(input, relay.trunc(input))


def rounded(node: TorchNode, data: Expr) -> Expr:
    """The nearest whole numbers, of two that are equally near the even one."""
    half = node.constant(0.5, data)
    below = relay.floor(data)
    even = relay.multiply(relay.floor(relay.multiply(relay.add(data, half), half)), node.constant(2.0, data))
    return relay.where(relay.equal(relay.subtract(data, below), half), even, relay.round(data))


@converter("aten::round")
def round_(node: TorchNode, input: Expr, decimals: int = 0) -> Expr:
    """To the nearest number of so many decimals, halves to even ones."""
    if node.is_integral(input):
        if decimals < 0:
            raise node.fail("integers cannot be rounded to tens and hundreds")
        return input
    if not decimals:
        return rounded(node, input)
    scale = node.constant(10.0 ** abs(decimals), input)
    if decimals > 0:
        return relay.divide(rounded(node, relay.multiply(input, scale)), scale)
    return relay.multiply(rounded(node, relay.divide(input, scale)), scale)


@converter("aten::expm1", "aten::special_expm1")
def expm1(node: TorchNode, input: Expr) -> Expr:
    """exp(x) - 1, exact near zero: with u = exp(x), it is (u - 1) x / log(u)."""
    data = node.floating(input)
    one = node.constant(1.0, data)
    power = relay.exp(data)
    less = relay.subtract(power, one)
    exact = relay.divide(relay.multiply(less, data), relay.log(power))
    found = relay.where(relay.equal(less, node.constant(-1.0, data)), less, exact)
    found = relay.where(relay.equal(power, one), data, found)
    return relay.where(relay.isinf(power), power, found)


@converter("aten::log1p", "aten::special_log1p")
def log1p(node: TorchNode, input: Expr) -> Expr:
    """log(1 + x), exact near zero: with u = 1 + x, it is x log(u) / (u - 1)."""
    data = node.floating(input)
    one = node.constant(1.0, data)
    more = relay.add(data, one)
    exact = relay.divide(relay.multiply(relay.log(more), data), relay.subtract(more, one))
    found = relay.where(relay.equal(more, one), data, exact)
    return relay.where(relay.isinf(more), relay.log(more), found)


@converter("aten::exp2", "aten::special_exp2")
def exp2(node: TorchNode, input: Expr) -> Expr:
    """Two to a power."""
    data = node.floating(input)
    return relay.power(node.constant(2.0, data), data)


@converter("aten::erfc", "aten::special_erfc")
def erfc(node: TorchNode, input: Expr) -> Expr:
    """One less the error function."""
    data = node.floating(input)
    return relay.subtract(node.constant(1.0, data), relay.erf(data))


@converter("aten::sinc", "aten::special_sinc")
def sinc(node: TorchNode, input: Expr) -> Expr:
    """sin(pi x) / (pi x), which is one at zero."""
    data = node.floating(input)
    angle = relay.multiply(data, node.constant(math.pi, data))
    is_zero = relay.equal(data, node.constant(0.0, data))
    one = node.constant(1.0, data)
    return relay.where(is_zero, one, relay.divide(relay.sin(angle), relay.where(is_zero, one, angle)))


@converter("aten::deg2rad")
def deg2rad(node: TorchNode, input: Expr) -> Expr:
    """Degrees as radians."""
    data = node.floating(input)
    return relay.multiply(data, node.constant(math.pi / 180, data))


@converter("aten::rad2deg")
def rad2deg(node: TorchNode, input: Expr) -> Expr:
    """Radians as degrees."""
    data = node.floating(input)
    return relay.multiply(data, node.constant(180 / math.pi, data))


@converter("aten::logit", "aten::special_logit")
def logit(node: TorchNode, input: Expr, eps: float | None = None) -> Expr:
    """log(x / (1 - x)), x kept between eps and 1 - eps."""
    data = node.floating(input)
    if eps is not None:
        data = relay.clip(data, eps, 1.0 - eps)
    return relay.log(relay.divide(data, relay.subtract(node.constant(1.0, data), data)))


@converter("aten::isnan")
def isnan(node: TorchNode, input: Expr) -> Expr:
    """True for what is not a number."""
    return relay.isnan(input) if not node.is_integral(input) else _nowhere(node, input)


@converter("aten::isinf")
def isinf(node: TorchNode, input: Expr) -> Expr:
    """True for infinities."""
    return relay.isinf(input) if not node.is_integral(input) else _nowhere(node, input)


@converter("aten::isfinite")
def isfinite(node: TorchNode, input: Expr) -> Expr:
    """True for numbers that are not infinite."""
    return relay.isfinite(input) if not node.is_integral(input) else relay.equal(input, input)


@converter("aten::isposinf")
def isposinf(node: TorchNode, input: Expr) -> Expr:
    """True for positive infinity."""
    return relay.logical_and(isinf(node, input), relay.greater(input, node.constant(0, input)))


@converter("aten::isneginf")
def isneginf(node: TorchNode, input: Expr) -> Expr:
    """True for negative infinity."""
    return relay.logical_and(isinf(node, input), relay.less(input, node.constant(0, input)))


@converter("aten::isreal")
def isreal(node: TorchNode, input: Expr) -> Expr:
    """True everywhere: there are no complex numbers."""
    return node.cast(relay.ones_like(input), "bool")


@converter("aten::signbit")
def signbit(node: TorchNode, input: Expr) -> Expr:
    """True for negative numbers, and for negative zero."""
    if node.dtype(input) == "bool":
        return _nowhere(node, input)
    zero = node.constant(0, input)
    if node.is_integral(input):
        return relay.less(input, zero)
    # The reciprocal of negative zero is negative.
    inverse = relay.divide(node.constant(1.0, input), input)
    return relay.logical_or(relay.less(input, zero), relay.less(inverse, zero))


def _nowhere(node: TorchNode, data: Expr) -> Expr:
    return relay.not_equal(data, data)


@converter("aten::nan_to_num")
def nan_to_num(
    node: TorchNode,
    input: Expr,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Expr:
    """Numbers in place of NaN and of the infinities, which by default become the largest ones."""
    if node.is_integral(input):
        return input
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}.get(
        node.dtype(input), 1.7976931348623157e308
    )
    zero = node.constant(0.0, input)
    found = relay.where(relay.isnan(input), node.constant(nan or 0.0, input), input)
    infinite = relay.isinf(input)
    above = node.constant(largest if posinf is None else posinf, input)
    below = node.constant(-largest if neginf is None else neginf, input)
    found = relay.where(relay.logical_and(infinite, relay.greater(input, zero)), above, found)
    return relay.where(relay.logical_and(infinite, relay.less(input, zero)), below, found)


# Arithmetic


def scaled(node: TorchNode, operand: Operand, alpha: Any) -> Operand:
    """An operand times the factor that sums have."""
    if isinstance(alpha, (int, float)) and alpha == 1:
        return operand
    if isinstance(operand, (int, float)) and isinstance(alpha, (int, float)):
        return operand * alpha
    return mul(node, operand, alpha)


@converter("aten::add")
def add(node: TorchNode, input: Operand, other: Operand, alpha: Any = 1) -> Expr:
    """The sum; truth values are added as "or"."""
    one, two = node.promoted(input, scaled(node, other, alpha))
    return relay.logical_or(one, two) if node.dtype(one) == "bool" else relay.add(one, two)


@converter("aten::sub", "aten::subtract")
def sub(node: TorchNode, input: Operand, other: Operand, alpha: Any = 1) -> Expr:
    """The difference."""
    one, two = node.promoted(input, scaled(node, other, alpha))
    return relay.subtract(one, two)


@converter("aten::rsub")
def rsub(node: TorchNode, input: Operand, other: Operand, alpha: Any = 1) -> Expr:
    """The difference the other way around."""
    one, two = node.promoted(other, scaled(node, input, alpha))
    return relay.subtract(one, two)


@converter("aten::mul", "aten::multiply")
def mul(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The product; truth values are multiplied as "and"."""
    one, two = node.promoted(input, other)
    return relay.logical_and(one, two) if node.dtype(one) == "bool" else relay.multiply(one, two)


@converter("aten::div", "aten::divide", "aten::true_divide")
def div(node: TorchNode, input: Operand, other: Operand, rounding_mode: str | None = None) -> Expr:
    """The quotient: of integers too a floating-point number, unless it is rounded to zero or down."""
    if rounding_mode == "floor":
        return floor_divide(node, input, other)
    dtype = node.result_dtype(input, other)
    if rounding_mode == "trunc":
        one, two = node.cast(input, dtype), node.cast(other, dtype)
        # Relay's division of integers rounds to zero.
        made = relay.divide(one, two)
        return made if category(dtype) < 2 else relay.trunc(made)
    dtype = node.floating_dtype(dtype)
    return relay.divide(node.cast(input, dtype), node.cast(other, dtype))


@converter("aten::floor_divide")
def floor_divide(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The quotient rounded down."""
    one, two = node.promoted(input, other)
    return relay.floor_divide(one, two)


@converter("aten::remainder")
def remainder(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """What a division that rounds down leaves, which has the sign of the divisor."""
    one, two = node.promoted(input, other)
    return relay.floor_mod(one, two)


@converter("aten::fmod")
def fmod(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """What a division that rounds to zero leaves, which has the sign of the dividend."""
    one, two = node.promoted(input, other)
    return relay.mod(one, two)


@converter("aten::pow", "aten::float_power")
def pow_(node: TorchNode, input: Operand, exponent: Operand) -> Expr:
    """A power."""
    if "float_power" in node.op_type:
        return relay.power(node.cast(input, "float64"), node.cast(exponent, "float64"))
    one, two = node.promoted(input, exponent)
    dtype = node.dtype(one)
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        if exponent == 2:
            return relay.multiply(one, one)
        if exponent == 1:
            return one
        if exponent == 3:
            return relay.multiply(relay.multiply(one, one), one)
        if is_floating(dtype) and exponent == 0.5:
            return relay.sqrt(one)
        if is_floating(dtype) and exponent == -0.5:
            return relay.rsqrt(one)
        if is_floating(dtype) and exponent == -1:
            return reciprocal(node, one)
    return relay.power(one, two)


@converter("aten::atan2", "aten::arctan2")
def atan2(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The angle of a point in the plane, from the quadrants of its coordinates."""
    dtype = node.floating_dtype(node.result_dtype(input, other))
    above, right = node.cast(input, dtype), node.cast(other, dtype)
    zero, pi = node.constant(0.0, dtype), node.constant(math.pi, dtype)
    half = node.constant(math.pi / 2, dtype)
    on_axis = relay.equal(right, zero)
    angle = relay.atan(relay.divide(above, relay.where(on_axis, node.constant(1.0, dtype), right)))
    turned = relay.where(signbit(node, above), relay.subtract(angle, pi), relay.add(angle, pi))
    found = relay.where(relay.less(right, zero), turned, angle)
    vertical = relay.where(relay.less(above, zero), relay.negative(half), half)
    behind = relay.where(signbit(node, above), relay.negative(pi), pi)
    at_origin = relay.where(signbit(node, right), behind, above)
    vertical = relay.where(relay.equal(above, zero), at_origin, vertical)
    found = relay.where(on_axis, vertical, found)
    # Two infinities are on a diagonal.
    both = relay.logical_and(relay.isinf(above), relay.isinf(right))
    diagonal = relay.where(relay.less(right, zero), node.constant(3 * math.pi / 4, dtype),
                           node.constant(math.pi / 4, dtype))  # fmt: skip
    diagonal = relay.where(relay.less(above, zero), relay.negative(diagonal), diagonal)
    found = relay.where(both, diagonal, found)
    return relay.where(relay.isnan(above), above, found)


@converter("aten::angle")
def angle(node: TorchNode, input: Expr) -> Expr:
    """Zero for positive numbers, pi for negative ones."""
    data = node.floating(input)
    zero = node.constant(0.0, data)
    found = relay.where(relay.less(data, zero), node.constant(math.pi, data), zero)
    return relay.where(relay.isnan(data), data, found)


@converter("aten::ldexp")
def ldexp(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """Times a power of two."""
    return mul(node, input, exp2(node, other))


@converter("aten::hypot")
def hypot(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """The length of the hypotenuse."""
    one, two = node.promoted(input, other)
    return relay.sqrt(relay.add(relay.multiply(one, one), relay.multiply(two, two)))


@converter("aten::maximum", "aten::max.other")
def maximum(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The greater; NaN where either is."""
    return _extreme(node, relay.maximum, relay.logical_or, input, other)


@converter("aten::minimum", "aten::min.other")
def minimum(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The smaller; NaN where either is."""
    return _extreme(node, relay.minimum, relay.logical_and, input, other)


def _extreme(
    node: TorchNode,
    build: Callable[[Expr, Expr], Expr],
    of_truth: Callable[[Expr, Expr], Expr],
    input: Operand,
    other: Operand,
) -> Expr:
    one, two = node.promoted(input, other)
    return of_truth(one, two) if node.dtype(one) == "bool" else build(one, two)


@converter("aten::fmax")
def fmax(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """The greater; where one is NaN, the other."""
    return _skipping_nan(node, maximum, input, other)


@converter("aten::fmin")
def fmin(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """The smaller; where one is NaN, the other."""
    return _skipping_nan(node, minimum, input, other)


def _skipping_nan(node: TorchNode, build: Callable[..., Expr], input: Expr, other: Expr) -> Expr:
    one, two = node.promoted(input, other)
    if node.is_integral(one):
        return build(node, one, two)
    found = relay.where(relay.isnan(two), one, build(node, one, two))
    return relay.where(relay.isnan(one), two, found)


@converter("aten::copysign")
def copysign(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """The first's size with the second's sign."""
    dtype = node.floating_dtype(node.result_dtype(input, other))
    one, two = node.cast(input, dtype), node.cast(other, dtype)
    size = relay.abs(one)
    return relay.where(signbit(node, two), relay.negative(size), size)


@converter("aten::heaviside")
def heaviside(node: TorchNode, input: Expr, values: Expr) -> Expr:
    """0 for negative elements, 1 for positive ones, and for zeros the value given."""
    zero = node.constant(0, input)
    step = node.cast(relay.greater(input, zero), node.dtype(input))
    return relay.where(relay.equal(input, zero), values, step)


@converter("aten::logaddexp")
def logaddexp(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """log(exp(a) + exp(b))."""
    one, two = node.promoted(input, other)
    high, low = relay.maximum(one, two), relay.minimum(one, two)
    apart = relay.subtract(low, high)
    found = relay.add(high, log1p(node, relay.exp(apart)))
    return relay.where(relay.equal(one, two), relay.add(one, node.constant(math.log(2), one)), found)


@converter("aten::logaddexp2")
def logaddexp2(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """log2(2**a + 2**b)."""
    one, two = node.promoted(input, other)
    scale = node.constant(math.log(2), one)
    return relay.divide(logaddexp(node, relay.multiply(one, scale), relay.multiply(two, scale)), scale)


@converter("aten::xlogy", "aten::special_xlogy")
def xlogy(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """x log(y), which is zero where x is, and NaN where y is."""
    dtype = node.floating_dtype(node.result_dtype(input, other))
    one, two = node.cast(input, dtype), node.cast(other, dtype)
    zero = node.constant(0.0, dtype)
    found = relay.where(relay.equal(one, zero), zero, relay.multiply(one, relay.log(two)))
    return relay.where(relay.isnan(two), two, found)


@converter("aten::lerp")
def lerp(node: TorchNode, input: Expr, end: Expr, weight: Operand) -> Expr:
    """A point on the way from one tensor to another."""
    return add(node, input, mul(node, weight, sub(node, end, input)))


@converter("aten::addcmul")
def addcmul(node: TorchNode, input: Expr, tensor1: Expr, tensor2: Expr, value: Any = 1) -> Expr:
    """A sum with a scaled product."""
    return add(node, input, scaled(node, mul(node, tensor1, tensor2), value))


@converter("aten::addcdiv")
def addcdiv(node: TorchNode, input: Expr, tensor1: Expr, tensor2: Expr, value: Any = 1) -> Expr:
    """A sum with a scaled quotient."""
    return add(node, input, scaled(node, div(node, tensor1, tensor2), value))


# Comparisons


def _comparison(names: tuple[str, ...], build: Callable[[Expr, Expr], Expr]) -> None:
    @converter(*names)
    def convert(node: TorchNode, input: Operand, other: Operand) -> Expr:
        one, two = node.promoted(input, other)
        return build(one, two)


_comparison(("aten::eq",), relay.equal)
_comparison(("aten::ne", "aten::not_equal"), relay.not_equal)
_comparison(("aten::lt", "aten::less"), relay.less)
_comparison(("aten::le", "aten::less_equal"), relay.less_equal)
_comparison(("aten::gt", "aten::greater"), relay.greater)
_comparison(("aten::ge", "aten::greater_equal"), relay.greater_equal)


@converter("aten::isclose")
def isclose(
    node: TorchNode, input: Expr, other: Expr, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Expr:
    """True where the difference is within tolerances."""
    one, two = node.promoted(input, other)
    same = relay.equal(one, two)
    if equal_nan and not node.is_integral(one):
        same = relay.logical_or(same, relay.logical_and(relay.isnan(one), relay.isnan(two)))
    first, second = node.floating(one), node.floating(two)
    allowed = relay.add(
        node.constant(atol, first), relay.multiply(node.constant(rtol, first), relay.abs(second))
    )
    apart = relay.abs(relay.subtract(first, second))
    near = relay.logical_and(relay.isfinite(apart), relay.less_equal(apart, allowed))
    return relay.logical_or(same, near)


# Truth values and bits


def _logical(name: str, build: Callable[[Expr, Expr], Expr]) -> None:
    @converter(name)
    def convert(node: TorchNode, input: Operand, other: Operand) -> Expr:
        return build(node.cast(input, "bool"), node.cast(other, "bool"))


_logical("aten::logical_and", relay.logical_and)
_logical("aten::logical_or", relay.logical_or)
_logical("aten::logical_xor", relay.logical_xor)


@converter("aten::logical_not")
def logical_not(node: TorchNode, input: Operand) -> Expr:
    """True where an element is zero."""
    return relay.logical_not(node.cast(input, "bool"))


@converter("aten::bitwise_not")
def bitwise_not(node: TorchNode, input: Expr) -> Expr:
    """Every bit the other way."""
    return relay.logical_not(input) if node.dtype(input) == "bool" else relay.bitwise_not(input)


Two = Callable[[Expr, Expr], Expr]


def _bits(names: tuple[str, ...], build: Two, of_truth: Two) -> None:
    @converter(*names)
    def convert(node: TorchNode, input: Operand, other: Operand) -> Expr:
        one, two = node.promoted(input, other)
        return of_truth(one, two) if node.dtype(one) == "bool" else build(one, two)


_bits(("aten::bitwise_and", "aten::__and__"), relay.bitwise_and, relay.logical_and)
_bits(("aten::bitwise_or", "aten::__or__"), relay.bitwise_or, relay.logical_or)
_bits(("aten::bitwise_xor", "aten::__xor__"), relay.bitwise_xor, relay.logical_xor)


@converter("aten::bitwise_left_shift", "aten::__lshift__")
def bitwise_left_shift(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """Bits moved up."""
    one, two = node.promoted(input, other)
    if is_floating(node.dtype(one)):
        return relay.multiply(one, relay.power(node.constant(2.0, one), two))
    return relay.left_shift(one, two)


@converter("aten::bitwise_right_shift", "aten::__rshift__")
def bitwise_right_shift(node: TorchNode, input: Operand, other: Operand) -> Expr:
    """Bits moved down."""
    one, two = node.promoted(input, other)
    if is_floating(node.dtype(one)):
        return relay.divide(one, relay.power(node.constant(2.0, one), two))
    return relay.right_shift(one, two)


# Choices and limits


@converter("aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar")
def where(node: TorchNode, condition: Expr, input: Operand, other: Operand) -> Expr:
    """One tensor where a condition holds, another where it does not."""
    one, two = node.promoted(input, other)
    return relay.where(node.cast(condition, "bool"), one, two)


@converter("aten::clamp", "aten::clip")
def clamp(node: TorchNode, input: Expr, min: Any = None, max: Any = None) -> Expr:
    """Elements kept between limits, either of which may be missing; where they cross, the upper one holds."""
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = node.result_dtype(input, *bounds)
    data = node.cast(input, dtype)
    if is_floating(dtype) and len(bounds) == 2 and node.fold(bounds) and min <= max:
        return relay.clip(data, float(min), float(max))
    if min is not None:
        data = relay.maximum(data, node.cast(min, dtype))
    return data if max is None else relay.minimum(data, node.cast(max, dtype))


@converter("aten::clamp_min")
def clamp_min(node: TorchNode, input: Expr, min: Any) -> Expr:
    """Elements not below a limit."""
    return clamp(node, input, min=min)


@converter("aten::clamp_max")
def clamp_max(node: TorchNode, input: Expr, max: Any) -> Expr:
    """Elements not above a limit."""
    return clamp(node, input, max=max)
