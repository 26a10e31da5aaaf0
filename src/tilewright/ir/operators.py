"""Building expressions: conversion of Python values, type promotion, and constant folding.

Promotion of two operands of different types:

* a scalar and a vector: the scalar is broadcast;
* an integer and a float: the integer becomes that float;
* two floats: the one of fewer bits becomes the other; bfloat16 and float16 both become float32;
* two integers: the one of fewer bits becomes the other; at equal bits, the signed becomes unsigned;
* a Python integer is an int32 (an int64 if necessary), a Python float a float32, before these rules apply.

``/`` on two integers is an error, because C and Python round differently: use ``truncdiv`` or ``floordiv``.

Constants are folded to what the compiled code would compute: every operation on floats rounds its operands and its
result to their type. ``x + 0.0`` is not ``x``, because of minus zero; ``x + (-0.0)``, ``x - 0.0`` and ``x * 1.0`` are,
and so is ``x + 0`` with a plain Python integer, which is what ``sum`` starts from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from typing import cast as typing_cast

import numpy as np

from tilewright.ir import expr as nodes
from tilewright.ir.op import Op
from tilewright.support.dtype import BOOL, FLOAT32, INT32, INT64, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.numbers import (
    float_to_integer,
    integer_to_float,
    round_float,
    shift_left,
    shift_right,
)
from tilewright.support.span import Span

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = 3.4028234663852886e38


def as_expr(value: Any) -> nodes.PrimExpr:
    """The expression that a Python value stands for."""
    if isinstance(value, nodes.PrimExpr):
        return value
    if isinstance(value, nodes.IterVar):
        return value.var
    if isinstance(value, (bool, int, float, np.generic)):
        return const(value)
    if isinstance(value, str):
        return nodes.StringImm(value)
    to_expr = getattr(value, "asobject", None)
    if to_expr is not None:
        return as_expr(to_expr())
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return const(value[()])
    raise ExpressionError(f"{value!r} of type {type(value).__name__} cannot be converted to an expression")


def as_argument(value: Any) -> nodes.PrimExpr:
    """Like ``as_expr``, and takes what only calls take: buffers stand for their data pointer."""
    data = getattr(value, "data", None)
    if isinstance(data, nodes.Var) and not isinstance(value, nodes.PrimExpr):
        return data
    return typing_cast(nodes.PrimExpr, value) if hasattr(value, "is_call_argument") else as_expr(value)


def const(value: Any, dtype: str | None = None, span: Span | None = None) -> nodes.PrimExpr:
    """A constant; without a type, a bool is bool, an integer int32 (int64 if it is too large), a float float32."""
    kind = _infer_type(value) if dtype is None else DataType(dtype)
    element = kind.element
    made: nodes.PrimExpr
    if element.is_integral or element.is_handle:
        if isinstance(value, (float, np.floating)) and not math.isfinite(value):
            raise ExpressionError(f"{value} cannot be a constant of type {kind}")
        if element.is_bool:
            value = bool(value)
        made = nodes.IntImm(element, int(value), span)
    else:
        made = nodes.FloatImm(element, float(value), span)
    return made if kind.lanes == 1 else nodes.Broadcast(made, kind.lanes, span)


def _infer_type(value: Any) -> DataType:
    """The type of a constant made from a Python or NumPy number."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, np.generic):
        return DataType(str(value.dtype))
    if isinstance(value, int):
        return INT32 if _INT32_MIN <= value <= _INT32_MAX else INT64
    if isinstance(value, float):
        return FLOAT32 if not math.isfinite(value) or abs(value) <= _FLOAT32_MAX else DataType("float64")
    raise ExpressionError(f"{value!r} of type {type(value).__name__} is not a number")


def const_true(lanes: int = 1) -> nodes.PrimExpr:
    """The constant true, in every lane."""
    return const(True, BOOL.with_lanes(lanes))


def make_zero(dtype: str) -> nodes.PrimExpr:
    """Zero of a type."""
    return const(0, dtype)


def min_value(dtype: str, span: Span | None = None) -> nodes.PrimExpr:
    """The least value of a type; of a float type, the least finite one."""
    kind = DataType(dtype)
    if kind.is_int:
        return const(-(1 << (kind.bits - 1)), kind, span)
    if kind.is_uint:
        return const(0, kind, span)
    return const(-_largest_float(kind), kind, span)


def max_value(dtype: str, span: Span | None = None) -> nodes.PrimExpr:
    """The greatest value of a type; of a float type, the greatest finite one."""
    kind = DataType(dtype)
    if kind.is_int:
        return const((1 << (kind.bits - 1)) - 1, kind, span)
    if kind.is_uint:
        return const((1 << kind.bits) - 1, kind, span)
    return const(_largest_float(kind), kind, span)


def infinity(dtype: str, span: Span | None = None) -> nodes.PrimExpr:
    """Positive infinity of a float type."""
    return const(math.inf, dtype, span)


def least(dtype: str) -> nodes.PrimExpr:
    """What the maximum of nothing is: nothing in the type is less, infinities included."""
    return const(-math.inf, dtype) if DataType(dtype).is_float else min_value(dtype)


def greatest(dtype: str) -> nodes.PrimExpr:
    """What the minimum of nothing is: nothing in the type is greater, infinities included."""
    return const(math.inf, dtype) if DataType(dtype).is_float else max_value(dtype)


def _largest_float(kind: DataType) -> float:
    if kind.is_bfloat16:
        return 3.3895313892515355e38
    largest = {16: 65504.0, 32: _FLOAT32_MAX, 64: 1.7976931348623157e308}
    if kind.is_float and kind.bits in largest:
        return largest[kind.bits]
    raise ExpressionError(f"{kind} has no greatest value")


def cast(dtype: str, value: Any, span: Span | None = None) -> nodes.PrimExpr:
    """The value as another type; constants are converted at once. A scalar cast to a vector type is broadcast."""
    kind = DataType(dtype)
    expr = as_expr(value)
    if expr.dtype is kind:
        return expr
    if expr.dtype.lanes == 1 and kind.lanes > 1:
        return nodes.Broadcast(cast(kind.element, expr, span), kind.lanes, span)
    if isinstance(expr, nodes.Broadcast) and expr.lanes == kind.lanes:
        return nodes.Broadcast(cast(kind.element, expr.value, span), kind.lanes, span)
    if expr.dtype.is_handle or kind.is_handle:
        if kind.is_handle and expr.dtype.is_handle:
            return expr
        raise ExpressionError(f"{expr.dtype} cannot be cast to {kind}; use tir.reinterpret", span=span)
    if isinstance(expr, nodes.IntImm):
        return const(integer_to_float(kind, expr.value) if kind.is_float else expr.value, kind, span)
    if isinstance(expr, nodes.FloatImm) and kind.type_code < 128:
        if kind.is_bool:
            return const(round_float(expr.dtype, expr.value) != 0, kind, span)
        if kind.is_integral:
            return const(float_to_integer(kind, round_float(expr.dtype, expr.value)), kind, span)
        return const(_narrowed(expr, kind), kind, span)
    return nodes.Cast(kind, expr, span)


def _narrowed(expr: nodes.FloatImm, kind: DataType) -> float:
    """A constant for another floating-point type, which keeps its digits where the code would not lose them."""
    narrower = expr.dtype.bits < kind.bits or (expr.dtype.bits == kind.bits and expr.dtype is not kind)
    return round_float(expr.dtype, expr.value) if narrower else expr.value


def match_types(lhs: Any, rhs: Any, span: Span | None = None) -> tuple[nodes.PrimExpr, nodes.PrimExpr]:
    """Both operands in their common type; see the module's text."""
    a = as_expr(lhs)
    b = as_expr(rhs)
    if a.dtype is b.dtype:
        return a, b
    if a.dtype.lanes != b.dtype.lanes:
        if a.dtype.lanes == 1:
            a = nodes.Broadcast(a, b.dtype.lanes)
        elif b.dtype.lanes == 1:
            b = nodes.Broadcast(b, a.dtype.lanes)
        else:
            raise ExpressionError(
                f"vectors of {a.dtype.lanes} and {b.dtype.lanes} lanes do not match: {a} and {b}", span=span
            )
    common = common_type(a.dtype, b.dtype)
    if common is None:
        raise ExpressionError(f"no common type for {a.dtype} and {b.dtype}: {a} and {b}", span=span)
    return cast(common, a, span), cast(common, b, span)


def common_type(a: DataType, b: DataType) -> DataType | None:
    """The type in which values of both types meet, or None."""
    if a is b:
        return a
    if a.is_handle or b.is_handle:
        return None
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float and a.bits == b.bits:
        return FLOAT32.with_lanes(a.lanes)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.is_uint else b


def _constants(a: nodes.PrimExpr, b: nodes.PrimExpr) -> bool:
    return isinstance(a, (nodes.IntImm, nodes.FloatImm)) and isinstance(b, (nodes.IntImm, nodes.FloatImm))


def _folded(fold: Callable[[Any, Any], Any], a: Any, b: Any, span: Span | None) -> nodes.PrimExpr:
    """An operation on two constants, with the rounding of their type before and after it."""
    dtype = a.dtype
    if not dtype.is_float:
        return const(fold(a.value, b.value), dtype, span)
    value = fold(round_float(dtype, a.value), round_float(dtype, b.value))
    return const(round_float(dtype, value), dtype, span)


def _is_nothing(given: Any, expr: nodes.PrimExpr) -> bool:
    """True for a summand that changes no sum: integer zeros, Python's included, and minus zero."""
    if not nodes.is_const(expr, 0):
        return False
    if not expr.dtype.is_float or (isinstance(given, int) and not isinstance(given, bool)):
        return True
    while isinstance(expr, nodes.Broadcast):
        expr = expr.value
    return math.copysign(1.0, typing_cast(nodes.FloatImm, expr).value) < 0


def _is_plus_zero(expr: nodes.PrimExpr) -> bool:
    """True for an integer zero, and for the floating-point zero without a sign."""
    while isinstance(expr, nodes.Broadcast):
        expr = expr.value
    if isinstance(expr, nodes.FloatImm):
        return expr.value == 0 and math.copysign(1.0, expr.value) > 0
    return nodes.is_const(expr, 0)


def _numeric(name: str, a: nodes.PrimExpr, b: nodes.PrimExpr, span: Span | None) -> None:
    """Arithmetic needs numbers."""
    if a.dtype.is_handle:
        raise ExpressionError(f"{name} needs numbers, not {a.dtype}: {a} and {b}", span=span)


def add(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Sum."""
    a, b = match_types(lhs, rhs, span)
    _numeric("+", a, b, span)
    if _constants(a, b):
        return _folded(lambda x, y: x + y, a, b, span)
    if _is_nothing(lhs, a):
        return b
    if _is_nothing(rhs, b):
        return a
    return nodes.Add(a, b, span)


def subtract(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Difference."""
    a, b = match_types(lhs, rhs, span)
    _numeric("-", a, b, span)
    if _constants(a, b):
        return _folded(lambda x, y: x - y, a, b, span)
    if _is_plus_zero(b):
        return a
    return nodes.Sub(a, b, span)


def multiply(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Product."""
    a, b = match_types(lhs, rhs, span)
    _numeric("*", a, b, span)
    if _constants(a, b):
        return _folded(lambda x, y: x * y, a, b, span)
    if nodes.is_const(a, 1):
        return b
    if nodes.is_const(b, 1):
        return a
    if a.dtype.is_integral and (nodes.is_const(a, 0) or nodes.is_const(b, 0)):
        return const(0, a.dtype, span)
    return nodes.Mul(a, b, span)


def true_divide(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Quotient of floats; an error for two integers."""
    a, b = match_types(lhs, rhs, span)
    if a.dtype.is_integral:
        raise ExpressionError(
            f"'/' on integers is ambiguous ({a} / {b}): use truncdiv or floordiv (or //), or cast to float",
            span=span,
        )
    return div(a, b, span)


def div(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Quotient; of integers, rounded towards zero."""
    a, b = match_types(lhs, rhs, span)
    _numeric("div", a, b, span)
    if a.dtype.is_float:
        # Rounded first: a number that is too small for the type is zero in it.
        if _constants(a, b) and round_float(b.dtype, b.value) != 0:  # type: ignore[attr-defined]
            return _folded(lambda x, y: x / y, a, b, span)
        return a if nodes.is_const(b, 1) else nodes.Div(a, b, span)
    return truncdiv(a, b, span)


def _integer_division(
    name: str, lhs: Any, rhs: Any, span: Span | None
) -> tuple[nodes.PrimExpr, nodes.PrimExpr]:
    """Matched integer operands with a divisor that is not the constant zero."""
    a, b = match_types(lhs, rhs, span)
    if not a.dtype.is_integral:
        raise ExpressionError(f"{name} is for integers, not {a.dtype}: {a} and {b}", span=span)
    if nodes.is_const(b, 0):
        raise ExpressionError(f"{name} by zero: {a}", span=span)
    return a, b


def truncdiv(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Quotient of integers, rounded towards zero."""
    a, b = _integer_division("truncdiv", lhs, rhs, span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        quotient = abs(a.value) // abs(b.value)
        return const(quotient if (a.value < 0) == (b.value < 0) else -quotient, a.dtype, span)
    if nodes.is_const(a, 0) or nodes.is_const(b, 1):
        return a
    return nodes.Div(a, b, span)


def truncmod(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Remainder of ``truncdiv``."""
    a, b = _integer_division("truncmod", lhs, rhs, span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        remainder = abs(a.value) % abs(b.value)
        return const(-remainder if a.value < 0 else remainder, a.dtype, span)
    if nodes.is_const(a, 0) or nodes.is_const(b, 1):
        return const(0, a.dtype, span)
    return nodes.Mod(a, b, span)


def floordiv(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Quotient of integers rounded down; of floats, the floor of the quotient."""
    a, b = match_types(lhs, rhs, span)
    if a.dtype.is_float:
        return call("floor", a.dtype, [div(a, b, span)], span)
    a, b = _integer_division("floordiv", a, b, span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        return const(a.value // b.value, a.dtype, span)
    if nodes.is_const(a, 0) or nodes.is_const(b, 1):
        return a
    return nodes.FloorDiv(a, b, span)


def floormod(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Remainder of ``floordiv``; of floats exact, and with the sign of the divisor, as Python's and NumPy's."""
    a, b = match_types(lhs, rhs, span)
    if a.dtype.is_float:
        zero, rest = const(0, a.dtype), call("fmod", a.dtype, [a, b], span)
        below, wrong = less(rest, zero), less(b, zero)
        turned = nodes.Select(not_equal(below, wrong), add(rest, b), rest, span)
        none = call("copysign", a.dtype, [zero, b], span)
        return nodes.Select(equal(rest, zero), none, turned, span)
    a, b = _integer_division("floormod", a, b, span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        return const(a.value % b.value, a.dtype, span)
    if nodes.is_const(a, 0) or nodes.is_const(b, 1):
        return const(0, a.dtype, span)
    return nodes.FloorMod(a, b, span)


def minimum(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """The smaller of two values; NaN where either is."""
    a, b = match_types(lhs, rhs, span)
    _numeric("min", a, b, span)
    if _constants(a, b):
        return _folded(lambda x, y: x if x <= y or x != x else y, a, b, span)
    return a if a is b else nodes.Min(a, b, span)


def maximum(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """The larger of two values; NaN where either is."""
    a, b = match_types(lhs, rhs, span)
    _numeric("max", a, b, span)
    if _constants(a, b):
        return _folded(lambda x, y: x if x >= y or x != x else y, a, b, span)
    return a if a is b else nodes.Max(a, b, span)


def negative(value: Any, span: Span | None = None) -> nodes.PrimExpr:
    """The value with its sign turned."""
    expr = as_expr(value)
    if isinstance(expr, (nodes.IntImm, nodes.FloatImm)):
        return const(-expr.value, expr.dtype, span)
    # Zero less zero is zero: only minus zero turns the sign of a zero.
    return subtract(const(-0.0 if expr.dtype.is_float else 0, expr.dtype), expr, span)


def _compare(
    lhs: Any, rhs: Any, span: Span | None, make: type[nodes.CmpExpr], fold: Callable[[Any, Any], bool]
) -> nodes.PrimExpr:
    a, b = match_types(lhs, rhs, span)
    if isinstance(a, nodes.FloatImm) and isinstance(b, nodes.FloatImm):
        return const(fold(round_float(a.dtype, a.value), round_float(b.dtype, b.value)), BOOL, span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        return const(fold(a.value, b.value), BOOL, span)
    return make(a, b, span)


def equal(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where equal."""
    return _compare(lhs, rhs, span, nodes.EQ, lambda a, b: bool(a == b))


def not_equal(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where different."""
    return _compare(lhs, rhs, span, nodes.NE, lambda a, b: bool(a != b))


def less(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where less."""
    return _compare(lhs, rhs, span, nodes.LT, lambda a, b: bool(a < b))


def less_equal(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where less or equal."""
    return _compare(lhs, rhs, span, nodes.LE, lambda a, b: bool(a <= b))


def greater(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where greater."""
    return _compare(lhs, rhs, span, nodes.GT, lambda a, b: bool(a > b))


def greater_equal(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """True where greater or equal."""
    return _compare(lhs, rhs, span, nodes.GE, lambda a, b: bool(a >= b))


def logical_and(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Both; a constant side folds."""
    a, b = match_types(lhs, rhs, span)
    if nodes.is_const(a, 1) or nodes.is_const(b, 0):
        return b
    if nodes.is_const(b, 1) or nodes.is_const(a, 0):
        return a
    return nodes.And(a, b, span)


def logical_or(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Either; a constant side folds."""
    a, b = match_types(lhs, rhs, span)
    if nodes.is_const(a, 1) or nodes.is_const(b, 0):
        return a
    if nodes.is_const(b, 1) or nodes.is_const(a, 0):
        return b
    return nodes.Or(a, b, span)


def logical_not(value: Any, span: Span | None = None) -> nodes.PrimExpr:
    """The opposite; constants and double negation fold."""
    expr = as_expr(value)
    if isinstance(expr, nodes.IntImm) and expr.dtype.is_bool:
        return const(not expr.value, BOOL, span)
    return expr.a if isinstance(expr, nodes.Not) else nodes.Not(expr, span)


def call(name: str, dtype: str, args: list[Any], span: Span | None = None) -> nodes.Call:
    """A call of the loop-level operator ``tir.<name>``."""
    return nodes.Call(dtype, Op.register(f"tir.{name}"), args, span)


def _bitwise(
    name: str, lhs: Any, rhs: Any, span: Span | None, fold: Callable[[int, int], int]
) -> nodes.PrimExpr:
    a, b = match_types(lhs, rhs, span)
    if not a.dtype.is_integral:
        raise ExpressionError(f"{name} is for integers, not {a.dtype}: {a} and {b}", span=span)
    if isinstance(a, nodes.IntImm) and isinstance(b, nodes.IntImm):
        return const(fold(a.value, b.value), a.dtype, span)
    return call(name, a.dtype, [a, b], span)


def bitwise_and(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Bits set in both."""
    return _bitwise("bitwise_and", lhs, rhs, span, lambda a, b: a & b)


def bitwise_or(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Bits set in either."""
    return _bitwise("bitwise_or", lhs, rhs, span, lambda a, b: a | b)


def bitwise_xor(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Bits set in one of the two."""
    return _bitwise("bitwise_xor", lhs, rhs, span, lambda a, b: a ^ b)


def bitwise_not(value: Any, span: Span | None = None) -> nodes.PrimExpr:
    """All bits turned."""
    expr = as_expr(value)
    if not expr.dtype.is_integral:
        raise ExpressionError(f"bitwise_not is for integers, not {expr.dtype}: {expr}", span=span)
    if isinstance(expr, nodes.IntImm):
        return const(not expr.value if expr.dtype.is_bool else ~expr.value, expr.dtype, span)
    return call("bitwise_not", expr.dtype, [expr], span)


def _shift(
    name: str, lhs: Any, rhs: Any, span: Span | None, fold: Callable[[int, int, int], int]
) -> nodes.PrimExpr:
    a, b = match_types(lhs, rhs, span)
    if nodes.is_const(b, 0):
        return a
    return _bitwise(name, a, b, span, lambda value, count: fold(a.dtype.bits, value, count))


def left_shift(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Bits moved up; a count below zero, or of all bits and more, gives zero."""
    return _shift("shift_left", lhs, rhs, span, shift_left)


def right_shift(lhs: Any, rhs: Any, span: Span | None = None) -> nodes.PrimExpr:
    """Bits moved down; signed numbers keep their sign, which is all that a count out of range leaves."""
    return _shift("shift_right", lhs, rhs, span, shift_right)
