"""Operators that compute each element from one element, in the type of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call
from tilewright.relay.op.calls import call, number
from tilewright.relay.op.definition import Gradient, OpPattern, Relation, define, named_after
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.relations import boolean_result, floating_type, number_type, same_type
from tilewright.relay.op.tensor import reference
from tilewright.relay.op.tensor.reference import Array, floating_test, rounding
from tilewright.te.tensor import Tensor

Derivative = Callable[[Any, Any], Any]
"""(argument, result) to the derivative there."""


_LEVEL_THREE = ("ceil", "floor", "trunc", "round", "sign", "abs", "negative", "isnan", "isfinite", "isinf")


def _unary(
    name: str,
    compute: Callable[[Tensor], Tensor],
    reference: Callable[[Array], Any],
    description: str,
    derivative: Derivative | None = None,
    gradient: Gradient | None = None,
    relation: Relation = floating_type,
) -> Callable[[RelayExpr], Call]:
    """Define an operator of one argument; gives the function that calls it."""
    to_bool = relation is boolean_result
    if derivative is not None:
        gradient = _by_derivative(derivative)
    elif to_bool:
        gradient = _flat
    op = define(
        name,
        arguments=("data",),
        relation=relation,
        compute=lambda attrs, inputs, out_type: [compute(inputs[0])],
        reference=lambda attrs, data: np.asarray(reference(data)).astype(
            np.bool_ if to_bool else data.dtype, copy=False
        ),
        gradient=gradient,
        layout=elementwise,
        kind=OpPattern.ELEMWISE,
        level=3 if name in _LEVEL_THREE else 1,
        description=description,
    )

    def made(data: RelayExpr) -> Call:
        return Call(op, (data,))

    return named_after(op, made)


def _by_derivative(derivative: Derivative) -> Gradient:
    return lambda result, grad: [grad * derivative(result.args[0], result)]


def _flat(result: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The gradient of a function that is constant almost everywhere."""
    return [call("zeros_like", result.args[0])]


log = _unary("log", topi.log, np.log, "The natural logarithm.", lambda x, y: number(1, y) / x)
log2 = _unary(
    "log2", topi.log2, np.log2, "The logarithm to base two.", lambda x, y: number(1 / math.log(2), y) / x
)
log10 = _unary(
    "log10", topi.log10, np.log10, "The logarithm to base ten.", lambda x, y: number(1 / math.log(10), y) / x
)
exp = _unary("exp", topi.exp, np.exp, "e to the power of each element.", lambda x, y: y)
sqrt = _unary("sqrt", topi.sqrt, np.sqrt, "The square root.", lambda x, y: number(0.5, y) / y)
rsqrt = _unary(
    "rsqrt",
    topi.rsqrt,
    reference.reciprocal_square_root,
    "One over the square root.",
    lambda x, y: number(-0.5, y) * y / x,
)
sigmoid = _unary(
    "sigmoid",
    topi.sigmoid,
    reference.sigmoid,
    "1 / (1 + exp(-x)).",
    lambda x, y: y * (number(1, y) - y),
)
erf = _unary(
    "erf",
    topi.erf,
    reference.error_function,
    "The error function.",
    lambda x, y: number(2 / math.sqrt(math.pi), y) * exp(-(x * x)),
)

sin = _unary("sin", topi.sin, np.sin, "The sine.", lambda x, y: call("cos", x))
cos = _unary("cos", topi.cos, np.cos, "The cosine.", lambda x, y: -sin(x))
tan = _unary("tan", topi.tan, np.tan, "The tangent.", lambda x, y: number(1, y) + y * y)
asin = _unary(
    "asin", topi.asin, np.arcsin, "The inverse of the sine.", lambda x, y: rsqrt(number(1, y) - x * x)
)
acos = _unary(
    "acos", topi.acos, np.arccos, "The inverse of the cosine.", lambda x, y: -rsqrt(number(1, y) - x * x)
)
atan = _unary(
    "atan",
    topi.atan,
    np.arctan,
    "The inverse of the tangent.",
    lambda x, y: number(1, y) / (number(1, y) + x * x),
)
sinh = _unary("sinh", topi.sinh, np.sinh, "The hyperbolic sine.", lambda x, y: call("cosh", x))
cosh = _unary("cosh", topi.cosh, np.cosh, "The hyperbolic cosine.", lambda x, y: sinh(x))
tanh = _unary("tanh", topi.tanh, np.tanh, "The hyperbolic tangent.", lambda x, y: number(1, y) - y * y)
asinh = _unary(
    "asinh",
    topi.asinh,
    np.arcsinh,
    "The inverse of the hyperbolic sine.",
    lambda x, y: rsqrt(x * x + number(1, y)),
)
acosh = _unary(
    "acosh",
    topi.acosh,
    np.arccosh,
    "The inverse of the hyperbolic cosine.",
    lambda x, y: rsqrt(x * x - number(1, y)),
)
atanh = _unary(
    "atanh",
    topi.atanh,
    np.arctanh,
    "The inverse of the hyperbolic tangent.",
    lambda x, y: number(1, y) / (number(1, y) - x * x),
)

floor = _unary(
    "floor",
    topi.floor,
    rounding(np.floor),
    "The greatest integer that is not greater.",
    gradient=_flat,
    relation=number_type,
)
ceil = _unary(
    "ceil",
    topi.ceil,
    rounding(np.ceil),
    "The least integer that is not less.",
    gradient=_flat,
    relation=number_type,
)
trunc = _unary(
    "trunc",
    topi.trunc,
    rounding(np.trunc),
    "The integer next towards zero.",
    gradient=_flat,
    relation=number_type,
)
round = _unary(
    "round",
    topi.round,
    rounding(reference.half_away_from_zero),
    "The nearest integer; halfway, the one farther from zero.",
    gradient=_flat,
    relation=number_type,
)
nearbyint = _unary(
    "nearbyint",
    topi.nearbyint,
    rounding(np.rint),
    "The nearest integer; halfway, the even one.",
    gradient=_flat,
    relation=number_type,
)
sign = _unary(
    "sign",
    topi.sign,
    lambda data: np.where(data == 0, data, np.sign(data)),
    "1, 0 or -1 as the element is positive, zero or negative; a zero keeps its sign and NaN stays.",
    gradient=_flat,
    relation=number_type,
)
abs = _unary("abs", topi.abs, np.abs, "The magnitude.", derivative=lambda x, y: sign(x), relation=number_type)
negative = _unary(
    "negative",
    topi.negative,
    np.negative,
    "The element with its sign turned.",
    gradient=lambda result, grad: [-grad],
    relation=number_type,
)
copy = _unary(
    "copy",
    topi.identity,
    lambda data: data.copy(),
    "A copy of the tensor.",
    gradient=lambda result, grad: [grad],
    relation=same_type,
)

bitwise_not = _unary("bitwise_not", topi.bitwise_not, np.bitwise_not, "All bits turned.", relation=same_type)
logical_not = _unary(
    "logical_not",
    topi.logical_not,
    np.logical_not,
    "True where the element is false, or zero.",
    relation=boolean_result,
)
isnan = _unary(
    "isnan", topi.isnan, floating_test(np.isnan, False), "True where not a number.", relation=boolean_result
)
isfinite = _unary(
    "isfinite",
    topi.isfinite,
    floating_test(np.isfinite, True),
    "True where neither infinite nor not a number.",
    relation=boolean_result,
)
isinf = _unary(
    "isinf", topi.isinf, floating_test(np.isinf, False), "True where infinite.", relation=boolean_result
)

fast_exp = _unary("fast_exp", topi.fast_exp, np.exp, "exp by a polynomial, in float32.", lambda x, y: y)
fast_tanh = _unary(
    "fast_tanh",
    topi.fast_tanh,
    np.tanh,
    "tanh by a rational function, in float32.",
    lambda x, y: number(1, y) - y * y,
)
fast_erf = _unary(
    "fast_erf",
    topi.fast_erf,
    reference.error_function,
    "erf by a rational function, in float32.",
    lambda x, y: number(2 / math.sqrt(math.pi), y) * exp(-(x * x)),
)
