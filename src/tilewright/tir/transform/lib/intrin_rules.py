"""Lowering rules for intrinsics in terms of simpler ones.

``q_multiply_shift`` is lowered this way for every target without its own rule. Code generators register the other
functions for targets without the intrinsic (``register_intrin_lowering``).
"""

from __future__ import annotations

import math

from tilewright.ir import operators
from tilewright.ir.expr import Call, IntImm, Let, PrimExpr, Select, Var
from tilewright.ir.op import register_intrin_lowering


def sigmoid(call: Call) -> PrimExpr:
    """1 / (1 + exp(-x))."""
    one = operators.const(1, call.dtype)
    return operators.div(
        one, operators.add(one, operators.call("exp", call.dtype, [operators.negative(call.args[0])]))
    )


def rsqrt(call: Call) -> PrimExpr:
    """1 / sqrt(x)."""
    return operators.div(operators.const(1, call.dtype), operators.call("sqrt", call.dtype, list(call.args)))


def exp10(call: Call) -> PrimExpr:
    """10 to the power x."""
    return operators.call("pow", call.dtype, [operators.const(10, call.dtype), call.args[0]])


def isnan(call: Call) -> PrimExpr:
    """Only a NaN differs from itself."""
    value = Var("value", call.args[0].dtype)
    return Let(value, call.args[0], operators.not_equal(value, value))


def isinf(call: Call) -> PrimExpr:
    """The magnitude is infinity."""
    magnitude = operators.call("fabs", call.args[0].dtype, [call.args[0]])
    return operators.equal(magnitude, operators.const(math.inf, call.args[0].dtype))


def isfinite(call: Call) -> PrimExpr:
    """The magnitude is below infinity; that of a NaN is not."""
    magnitude = operators.call("fabs", call.args[0].dtype, [call.args[0]])
    return operators.less(magnitude, operators.const(math.inf, call.args[0].dtype))


@register_intrin_lowering("tir.q_multiply_shift", "default")
def q_multiply_shift(call: Call) -> PrimExpr:
    """``x * y * 2**(s - q)`` for a fixed-point multiplier ``y``, rounded half up, in 64 bits."""
    x, y, fraction_bits, shift = call.args
    wide = operators.const(0, "int64").dtype.with_lanes(call.dtype.lanes)
    product = operators.cast(wide, x)
    shift = operators.cast(wide, shift)
    zero = operators.const(0, wide)
    if isinstance(call.args[3], IntImm):
        left = operators.const(max(call.args[3].value, 0), wide)
        right = operators.const(max(-call.args[3].value, 0), wide)
    else:
        left = Select(operators.greater(shift, zero), shift, zero)
        right = Select(operators.greater(shift, zero), zero, operators.subtract(zero, shift))
    product = operators.multiply(operators.left_shift(product, left), operators.cast(wide, y))
    total = operators.add(right, operators.cast(wide, fraction_bits))
    half = operators.left_shift(operators.const(1, wide), operators.subtract(total, operators.const(1, wide)))
    return operators.cast(call.dtype, operators.right_shift(operators.add(product, half), total))
