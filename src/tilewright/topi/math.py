"""Functions of one value, element by element."""

from __future__ import annotations

import math as real_math
from collections.abc import Callable
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr, Select
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.span import Span
from tilewright.te.elementwise import unary
from tilewright.te.tensor import Tensor
from tilewright.tir import op
from tilewright.topi import polynomial


def _unary(
    name: str, function: Callable[[PrimExpr], PrimExpr], description: str
) -> Callable[[Tensor | ExprLike], Any]:
    """An operator of one tensor made from a function of scalars."""

    def operator(x: Tensor | ExprLike) -> Any:
        return unary(name, function, x)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = description
    return operator


def _sign(value: PrimExpr) -> PrimExpr:
    """1, -1, or the value itself: a zero keeps its sign and a NaN stays."""
    zero, one = operators.const(0, value.dtype), operators.const(1, value.dtype)
    positive = Select(value > zero, one, value)
    return (
        positive if value.dtype.is_uint else Select(value < zero, operators.const(-1, value.dtype), positive)
    )


identity = _unary("identity", lambda value: value, "A copy.")
negative = _unary("negative", operators.negative, "The negated value.")
exp = _unary("exp", op.exp, "e to the power of x.")
erf = _unary("erf", op.erf, "The error function.")
tanh = _unary("tanh", op.tanh, "The hyperbolic tangent.")
tan = _unary("tan", op.tan, "The tangent.")
cos = _unary("cos", op.cos, "The cosine.")
cosh = _unary("cosh", op.cosh, "The hyperbolic cosine.")
sin = _unary("sin", op.sin, "The sine.")
sinh = _unary("sinh", op.sinh, "The hyperbolic sine.")
acos = _unary("acos", op.acos, "The inverse of the cosine.")
acosh = _unary("acosh", op.acosh, "The inverse of the hyperbolic cosine.")
asin = _unary("asin", op.asin, "The inverse of the sine.")
asinh = _unary("asinh", op.asinh, "The inverse of the hyperbolic sine.")
atan = _unary("atan", op.atan, "The inverse of the tangent.")
atanh = _unary("atanh", op.atanh, "The inverse of the hyperbolic tangent.")
floor = _unary("floor", op.floor, "The greatest integer that is not greater.")
ceil = _unary("ceil", op.ceil, "The least integer that is not less.")
trunc = _unary("trunc", op.trunc, "The integer next towards zero.")
round = _unary("round", op.round, "The nearest integer; halfway, the one farther from zero.")
nearbyint = _unary("nearbyint", op.nearbyint, "The nearest integer; halfway, the even one.")
sign = _unary("sign", _sign, "1, 0 or -1 as the value is positive, zero or negative; NaN stays.")
abs = _unary("abs", op.abs, "The magnitude.")
isnan = _unary("isnan", op.isnan, "True where not a number.")
isfinite = _unary("isfinite", op.isfinite, "True where neither infinite nor not a number.")
isinf = _unary("isinf", op.isinf, "True where infinite.")
log = _unary("log", op.log, "The natural logarithm.")
log2 = _unary("log2", op.log2, "The logarithm to base two.")
log10 = _unary("log10", op.log10, "The logarithm to base ten.")
sqrt = _unary("sqrt", op.sqrt, "The square root.")
rsqrt = _unary("rsqrt", op.rsqrt, "One over the square root.")
sigmoid = _unary("sigmoid", op.sigmoid, "1 / (1 + exp(-x)).")
fast_exp = _unary("fast_exp", polynomial.fast_exp, "exp by a polynomial; float32 only, others exactly.")
fast_tanh = _unary("fast_tanh", polynomial.fast_tanh, "tanh by a rational function; float32 only.")
fast_erf = _unary("fast_erf", polynomial.fast_erf, "erf by a rational function; float32 only.")


def left_shift(x: Tensor, n: ExprLike) -> Any:
    """Every element shifted up by the same number of bits."""
    return unary("left_shift", lambda value: operators.left_shift(value, n), x)


def right_shift(x: Tensor, n: ExprLike) -> Any:
    """Every element shifted down by the same number of bits."""
    return unary("right_shift", lambda value: operators.right_shift(value, n), x)


def clip(x: Tensor, a_min: Any, a_max: Any) -> Any:
    """Values below ``a_min`` become it, values above ``a_max`` become that; NaN stays."""
    low = _limit(a_min, x.dtype, real_math.ceil)
    high = _limit(a_max, x.dtype, real_math.floor)

    def clipped(value: PrimExpr) -> PrimExpr:
        # Both comparisons are false for a NaN, which falls through.
        return Select(value > high, high, Select(value < low, low, value))

    return unary("clip", clipped, x)


def _limit(limit: Any, dtype: DataType, inwards: Callable[[float], int]) -> PrimExpr:
    """A limit in the type of the values; outside of an integer type it becomes that type's end."""
    if isinstance(limit, Tensor):
        limit = limit()
    constant = getattr(limit, "value", limit)
    if isinstance(constant, bool) or not isinstance(constant, (int, float)):
        return operators.cast(dtype, limit)
    if not dtype.is_integral:
        return operators.const(constant, dtype)
    least = int(operators.min_value(dtype).value)  # type: ignore[attr-defined]
    most = int(operators.max_value(dtype).value)  # type: ignore[attr-defined]
    if constant <= least:
        return operators.const(least, dtype)
    return operators.const(most if constant >= most else inwards(constant), dtype)


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Any:
    """x times the fixed-point number ``multiplier * 2**(shift - 31)``, rounded to the nearest integer."""
    return unary(
        "fixed_point_multiply",
        lambda value: op.q_multiply_shift(
            value,
            operators.const(multiplier, "int32"),
            operators.const(31, "int32"),
            operators.const(shift, "int32"),
        ),
        x,
    )


def cast(x: Tensor | ExprLike, dtype: str, span: Span | None = None) -> Any:
    """The values as another type."""
    return unary("cast", lambda value: operators.cast(dtype, value, span), x)


def reinterpret(x: Tensor | ExprLike, dtype: str) -> Any:
    """The same bits as another type of the same size."""
    return unary("reinterpret", lambda value: op.reinterpret(dtype, value), x)


def ceil_log2(x: Tensor | ExprLike) -> Any:
    """The least integer n such that 2**n is not less than x, in the type of x; 0 where x is below 1."""
    return unary("ceil_log2", _ceil_log2, x)


def _ceil_log2(value: PrimExpr) -> PrimExpr:
    if not value.dtype.is_integral:
        return op.ceil(op.log2(value))
    if value.dtype.is_bool:
        raise ExpressionError("ceil_log2 takes numbers, not bool")
    one = operators.const(1, value.dtype)
    # The number of leading zeros of 0 is undefined, so it is never computed.
    below = operators.maximum(value - one, one)
    bits = operators.subtract(value.dtype.bits, op.clz(below))
    return Select(value > one, operators.cast(value.dtype, bits), operators.const(0, value.dtype))
