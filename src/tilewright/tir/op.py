"""Functions that build expressions: calls, logic, limits of types, mathematics and division.

Floating-point functions take floating-point expressions; integers raise ``ExpressionError`` instead of being converted
silently. Rounding functions return an integer unchanged. Functions that round or compare fold constants.
"""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Call, ExprLike, FloatImm, IntImm, PrimExpr, Select, StringImm
from tilewright.ir.op import Op
from tilewright.ir.operators import const, infinity, max_value, min_value
from tilewright.runtime.registry import register_func
from tilewright.support.dtype import BOOL, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.numbers import round_float
from tilewright.support.span import Span

__all__ = [
    "call_packed",
    "call_cpacked",
    "call_intrin",
    "call_pure_extern",
    "call_extern",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "ret",
    "trace",
    "likely",
    "reinterpret",
    "isnullptr",
    "same_address",
    "if_then_else",
    "any",
    "all",
    "const",
    "infinity",
    "min_value",
    "max_value",
    "vectorlow",
    "vectorhigh",
    "vectorcombine",
    "tvm_tuple",
    "exp",
    "exp2",
    "exp10",
    "erf",
    "tanh",
    "sigmoid",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "tan",
    "cos",
    "cosh",
    "acos",
    "acosh",
    "sin",
    "sinh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "atan2",
    "hypot",
    "nextafter",
    "copysign",
    "ldexp",
    "fmod",
    "power",
    "pow",
    "fma",
    "floor",
    "ceil",
    "trunc",
    "round",
    "nearbyint",
    "abs",
    "isnan",
    "isinf",
    "isfinite",
    "popcount",
    "clz",
    "q_multiply_shift",
    "div",
    "indexdiv",
    "indexmod",
    "truncdiv",
    "truncmod",
    "floordiv",
    "floormod",
]

Unary = Callable[[ExprLike], PrimExpr]
Binary = Callable[[ExprLike, ExprLike], PrimExpr]

# Calls


def _packed_argument(argument: Any) -> PrimExpr:
    """A buffer as the tensor that a packed function receives; anything else as an expression."""
    if not isinstance(argument, Buffer):
        return operators.as_argument(argument)
    shape = operators.call("tvm_stack_make_shape", "handle", list(argument.shape))
    strides: ExprLike = 0
    if argument.strides:
        strides = operators.call("tvm_stack_make_shape", "handle", list(argument.strides))
    parts = [
        argument.data,
        shape,
        strides,
        len(argument.shape),
        const(0, argument.dtype),
        argument.elem_offset,
    ]
    return operators.call("tvm_stack_make_array", "handle", parts)


def call_packed(*args: Any, span: Span | None = None) -> Call:
    """Call a registered function by name, the first argument; buffers become tensors for the call."""
    return operators.call("tvm_call_packed", "int32", [_packed_argument(argument) for argument in args], span)


def call_cpacked(*args: Any, span: Span | None = None) -> Call:
    """Like ``call_packed``, for a function of the C calling convention that is linked with the program."""
    return operators.call(
        "tvm_call_cpacked", "int32", [_packed_argument(argument) for argument in args], span
    )


def call_intrin(dtype: str, func_name: str | Op, *args: Any, span: Span | None = None) -> Call:
    """Call an intrinsic by name (``"tir.exp"``)."""
    return Call(dtype, func_name, args, span)


def call_pure_extern(dtype: str, func_name: str, *args: Any, span: Span | None = None) -> Call:
    """Call a C function whose result depends only on its arguments."""
    return operators.call("call_pure_extern", dtype, [StringImm(func_name), *args], span)


def call_extern(dtype: str, func_name: str, *args: Any, span: Span | None = None) -> Call:
    """Call a C function; buffers are passed as their data pointer."""
    return operators.call("call_extern", dtype, [StringImm(func_name), *args], span)


def _llvm_call(kind: str, dtype: str, name: str, args: Sequence[Any], span: Span | None) -> Call:
    """A call of an LLVM intrinsic; the first argument says how many of the rest are part of its signature."""
    if not isinstance(name, str) or not name.startswith("llvm."):
        raise ExpressionError(f"an LLVM intrinsic has a name such as llvm.fma, not {name!r}", span=span)
    count = operators.as_expr(args[0]) if args else None
    if not isinstance(count, IntImm):
        raise ExpressionError(
            f"the first argument of {name} is a constant: how many arguments are in its overloaded signature",
            span=span,
        )
    return operators.call(kind, dtype, [StringImm(name), *args], span)


def call_llvm_intrin(dtype: str, name: str, *args: Any, span: Span | None = None) -> Call:
    """Call an LLVM intrinsic that may have effects: (type, name, number of signature arguments, arguments...)."""
    return _llvm_call("call_llvm_intrin", dtype, name, args, span)


def call_llvm_pure_intrin(dtype: str, name: str, *args: Any, span: Span | None = None) -> Call:
    """Call an LLVM intrinsic without effects: (type, name, number of signature arguments, arguments...)."""
    return _llvm_call("call_llvm_pure_intrin", dtype, name, args, span)


def ret(val: ExprLike) -> Call:
    """Return a value from the function."""
    value = operators.as_expr(val)
    return operators.call("ret", value.dtype, [value])


def trace(args: Sequence[Any], trace_action: str = "tvm.default_trace_action") -> Call:
    """Pass the arguments to a registered function while the program runs; gives what that function returns."""
    if not isinstance(args, (list, tuple)) or not args:
        raise ExpressionError("trace takes a list of the values to look at")
    values = [_packed_argument(argument) for argument in args]
    return operators.call("tvm_call_trace_packed", values[-1].dtype, [StringImm(trace_action), *values])


@register_func("tvm.default_trace_action", override=True)
def _print_traced(*args: Any) -> Any:
    """What a trace does if it is not told: it shows the values. The last one is the result."""
    sys.stdout.write(f"{list(args)}\n")
    return args[-1]


def tvm_tuple(*args: Any) -> Call:
    """Several values as one, where a statement takes a single node."""
    return operators.call("tvm_tuple", "handle", list(args))


def likely(cond: ExprLike, span: Span | None = None) -> PrimExpr:
    """The condition, marked as almost always true: loop partitioning and code layout go by it."""
    condition = operators.as_expr(cond)
    return (
        condition
        if isinstance(condition, IntImm)
        else operators.call("likely", condition.dtype, [condition], span)
    )


def reinterpret(dtype: str, value: ExprLike, span: Span | None = None) -> PrimExpr:
    """The same bits as another type of the same size."""
    kind, expr = DataType(dtype), operators.as_expr(value)
    if expr.dtype is kind:
        return expr
    if expr.dtype.bits * expr.dtype.lanes != kind.bits * kind.lanes:
        raise ExpressionError(
            f"{expr.dtype} and {kind} differ in size: one cannot be reinterpreted as the other", span=span
        )
    return operators.call("reinterpret", kind, [expr], span)


def isnullptr(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """True if a handle points nowhere."""
    return operators.call("isnullptr", BOOL, [x], span)


def same_address(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """True if two handles point to the same place."""
    return operators.call("same_address", BOOL, [a, b], span)


def vectorlow(dtype: str, vec: ExprLike) -> PrimExpr:
    """The first half of a vector's lanes."""
    return operators.call("vectorlow", dtype, [vec])


def vectorhigh(dtype: str, vec: ExprLike) -> PrimExpr:
    """The second half of a vector's lanes."""
    return operators.call("vectorhigh", dtype, [vec])


def vectorcombine(dtype: str, vec1: ExprLike, vec2: ExprLike) -> PrimExpr:
    """Two vectors one after the other."""
    return operators.call("vectorcombine", dtype, [vec1, vec2])


# Logic


def any(*args: ExprLike, span: Span | None = None) -> PrimExpr:
    """True if one of the conditions is."""
    return _fold_logic("any", operators.logical_or, args, span)


def all(*args: ExprLike, span: Span | None = None) -> PrimExpr:
    """True if all conditions are."""
    return _fold_logic("all", operators.logical_and, args, span)


def _fold_logic(
    name: str, combine: Callable[..., PrimExpr], conditions: tuple[ExprLike, ...], span: Span | None
) -> PrimExpr:
    if not conditions:
        raise ExpressionError(f"{name} needs one condition or more", span=span)
    tests = [operators.as_expr(condition) for condition in conditions]
    for test in tests:
        if not test.dtype.is_bool:
            raise ExpressionError(f"{name} takes conditions, and {test} is {test.dtype}", span=span)
    result = tests[0]
    for test in tests[1:]:
        result = combine(result, test, span)
    return result


def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike, span: Span | None = None) -> PrimExpr:
    """One of two values, of which only the one taken is evaluated; a constant condition decides at once."""
    condition = operators.as_expr(cond)
    if not condition.dtype.is_bool or condition.dtype.lanes != 1:
        raise ExpressionError(
            f"the condition of if_then_else is a bool, not {condition.dtype}: {condition}", span=span
        )
    true_value, false_value = operators.match_types(t, f, span)
    if isinstance(condition, IntImm):
        return true_value if condition.value else false_value
    return operators.call("if_then_else", true_value.dtype, [condition, true_value, false_value], span)


# Mathematics


def _floating(name: str, value: ExprLike, span: Span | None = None) -> PrimExpr:
    """The value as an expression of a floating-point (or custom) type."""
    expr = operators.as_expr(value)
    if expr.dtype.is_integral or expr.dtype.is_handle:
        raise ExpressionError(
            f"{name} takes a floating-point number, not {expr.dtype}: {expr}; convert it with .astype first",
            span=span,
        )
    return expr


def _unary(name: str, description: str) -> Unary:
    """A function of one floating-point number."""

    def function(x: ExprLike) -> PrimExpr:
        value = _floating(name, x)
        return operators.call(name, value.dtype, [value])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    return function


def _binary(name: str, description: str) -> Binary:
    """A function of two floating-point numbers, brought to one type."""

    def function(x1: ExprLike, x2: ExprLike) -> PrimExpr:
        a, b = operators.match_types(x1, x2)
        _floating(name, a)
        return operators.call(name, a.dtype, [a, b])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    return function


exp = _unary("exp", "e to the power of x.")
exp2 = _unary("exp2", "Two to the power of x.")
exp10 = _unary("exp10", "Ten to the power of x.")
erf = _unary("erf", "The error function.")
tanh = _unary("tanh", "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).")
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base two.")
log10 = _unary("log10", "The logarithm to base ten.")
log1p = _unary("log1p", "log(1 + x), exact near zero.")
sqrt = _unary("sqrt", "The square root.")
rsqrt = _unary("rsqrt", "One over the square root.")
tan = _unary("tan", "The tangent.")
cos = _unary("cos", "The cosine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
acos = _unary("acos", "The inverse of the cosine.")
acosh = _unary("acosh", "The inverse of the hyperbolic cosine.")
sin = _unary("sin", "The sine.")
sinh = _unary("sinh", "The hyperbolic sine.")
asin = _unary("asin", "The inverse of the sine.")
asinh = _unary("asinh", "The inverse of the hyperbolic sine.")
atan = _unary("atan", "The inverse of the tangent.")
atanh = _unary("atanh", "The inverse of the hyperbolic tangent.")

atan2 = _binary("atan2", "The angle of the point (x2, x1).")
hypot = _binary("hypot", "sqrt(x1 * x1 + x2 * x2) without overflow on the way.")
nextafter = _binary("nextafter", "The representable number after x1 in the direction of x2.")
copysign = _binary("copysign", "The magnitude of x1 with the sign of x2.")


_remainder = _binary("fmod", "The remainder of x1 / x2 with the sign of x1.")


def fmod(x: ExprLike, y: ExprLike) -> PrimExpr:
    """The remainder of x / y with the sign of x."""
    return _remainder(x, y)


def ldexp(x1: ExprLike, x2: ExprLike) -> PrimExpr:
    """x1 times two to the power of the integer x2."""
    value, exponent = _floating("ldexp", x1), operators.as_expr(x2)
    if not exponent.dtype.is_integral:
        raise ExpressionError(f"the exponent of ldexp is an integer, not {exponent.dtype}: {exponent}")
    return operators.call("ldexp", value.dtype, [value, exponent])


def power(x: ExprLike, y: ExprLike, span: Span | None = None) -> PrimExpr:
    """x to the power of y, both floating-point."""
    a, b = operators.match_types(x, y, span)
    _floating("power", a, span)
    return operators.call("pow", a.dtype, [a, b], span)


pow = power


def fma(x: ExprLike, y: ExprLike, z: ExprLike) -> PrimExpr:
    """x * y + z, rounded once."""
    a, b = operators.match_types(x, y)
    a, c = operators.match_types(a, z)
    b, c = operators.match_types(b, c)
    _floating("fma", a)
    return operators.call("fma", a.dtype, [a, b, c])


def _half_away_from_zero(value: float) -> float:
    """The nearest integer; of two, the one farther from zero."""
    fraction, whole = math.modf(value)
    return whole + math.copysign(1.0, value) if builtins.abs(fraction) >= 0.5 else whole


def _rounding(name: str, fold: Callable[[float], float], description: str) -> Callable[..., PrimExpr]:
    """A function that rounds; integers are round already, and constants fold."""

    def function(x: ExprLike, span: Span | None = None) -> PrimExpr:
        value = operators.as_expr(x)
        if value.dtype.is_integral:
            return value
        _floating(name, value, span)
        if isinstance(value, FloatImm):
            # Constants keep digits that their type has not.
            number = round_float(value.dtype, value.value)
            if not math.isfinite(number):
                return value
            rounded = float(fold(number))
            # A negative number that rounds to zero gives minus zero, as the machine does.
            return const(math.copysign(rounded, number) if rounded == 0 else rounded, value.dtype, span)
        return operators.call(name, value.dtype, [value], span)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    return function


floor = _rounding("floor", math.floor, "The greatest integer that is not greater.")
ceil = _rounding("ceil", math.ceil, "The least integer that is not less.")
trunc = _rounding("trunc", math.trunc, "The integer next towards zero.")
round = _rounding("round", _half_away_from_zero, "The nearest integer; halfway, the one farther from zero.")
nearbyint = _rounding("nearbyint", builtins.round, "The nearest integer; halfway, the even one.")


def abs(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """The magnitude."""
    value = operators.as_expr(x)
    if value.dtype.is_uint:
        return value
    if isinstance(value, (IntImm, FloatImm)):
        return const(builtins.abs(value.value), value.dtype, span)
    if value.dtype.is_int:
        zero = const(0, value.dtype)
        return Select(operators.greater_equal(value, zero), value, operators.subtract(zero, value), span)
    _floating("abs", value, span)
    return operators.call("fabs", value.dtype, [value], span)


def isnan(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """True where not a number."""
    value = operators.as_expr(x)
    kind = BOOL.with_lanes(value.dtype.lanes)
    if value.dtype.is_integral:
        return const(False, kind, span)
    _floating("isnan", value, span)
    if isinstance(value, FloatImm):
        return const(math.isnan(value.value), kind, span)
    return operators.call("isnan", kind, [value], span)


def isinf(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """True where infinite."""
    value = operators.as_expr(x)
    if value.dtype.is_integral:
        return const(False, BOOL.with_lanes(value.dtype.lanes), span)
    return operators.equal(abs(value, span), infinity(value.dtype), span)


def isfinite(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """True where neither infinite nor not a number."""
    value = operators.as_expr(x)
    if value.dtype.is_integral:
        return const(True, BOOL.with_lanes(value.dtype.lanes), span)
    # Comparing with a NaN is false, so one comparison covers both.
    return operators.less(abs(value, span), infinity(value.dtype), span)


def _integer(name: str, value: ExprLike) -> PrimExpr:
    expr = operators.as_expr(value)
    if not expr.dtype.is_integral:
        raise ExpressionError(f"{name} takes an integer, not {expr.dtype}: {expr}")
    return expr


def popcount(x: ExprLike) -> PrimExpr:
    """The number of bits that are set."""
    value = _integer("popcount", x)
    return operators.call("popcount", value.dtype, [value])


def clz(x: ExprLike) -> PrimExpr:
    """The number of zero bits above the highest one, as an int32; undefined for zero."""
    value = _integer("clz", x)
    return operators.call("clz", DataType("int32").with_lanes(value.dtype.lanes), [value])


def q_multiply_shift(x: ExprLike, y: ExprLike, q: ExprLike, s: ExprLike) -> PrimExpr:
    """Fixed-point product of two Q numbers: ``round(x * y * 2**(s - q))``, exact in between."""
    value = _integer("q_multiply_shift", x)
    kind = DataType("int32").with_lanes(value.dtype.lanes)
    return operators.call("q_multiply_shift", kind, [value, y, q, s])


# Division


def div(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The quotient; of integers, rounded towards zero."""
    return operators.div(a, b, span)


def truncdiv(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The quotient of integers, rounded towards zero."""
    return operators.truncdiv(a, b, span)


def truncmod(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The remainder of ``truncdiv``."""
    return operators.truncmod(a, b, span)


def floordiv(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The quotient, rounded down."""
    return operators.floordiv(a, b, span)


def floormod(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The remainder of ``floordiv``."""
    return operators.floormod(a, b, span)


def indexdiv(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """Quotient of two integers that are known not to be negative: every rounding is the same."""
    return operators.floordiv(a, b, span)


def indexmod(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """Remainder of two integers that are known not to be negative."""
    return operators.floormod(a, b, span)
