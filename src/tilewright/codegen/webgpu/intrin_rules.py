"""Intrinsics in WGSL."""

from __future__ import annotations

from tilewright.codegen.c.intrin_rules import extern_call, register_rules
from tilewright.codegen.metal.intrin_rules import erf
from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr
from tilewright.tir.transform.lib import intrin_rules as rules

_SAME = (
    *(
        "exp",
        "exp2",
        "tanh",
        "sqrt",
        "log",
        "log2",
        "tan",
        "cos",
        "cosh",
        "acos",
        "acosh",
        "sin",
        "sinh",
        "asin",
    ),
    *("asinh", "atan", "atanh", "floor", "ceil", "trunc", "round", "atan2", "pow", "fma", "ldexp"),
)
_OTHER_NAMES = {"fabs": "abs", "nearbyint": "round", "rsqrt": "inverseSqrt", "popcount": "countOneBits"}
_OTHER_NAMES |= {"clz": "countLeadingZeros"}
_LN_10 = 2.302585092994046


def _call(call: Call) -> PrimExpr:
    name = call.op.name.removeprefix("tir.")
    return extern_call(call.dtype, _OTHER_NAMES.get(name, name), list(call.args))


def _round(call: Call) -> PrimExpr:
    """WGSL rounds halves to even; ours go away from zero."""
    x = call.args[0]
    half = operators.const(0.5, call.dtype)
    size = operators.call("floor", call.dtype, [operators.add(operators.call("fabs", call.dtype, [x]), half)])
    return extern_call(
        call.dtype, "select", [operators.negative(size), size, operators.greater_equal(x, 0.0)]
    )


def _log10(call: Call) -> PrimExpr:
    logarithm = operators.call("log", call.dtype, list(call.args))
    return operators.multiply(logarithm, operators.const(1 / _LN_10, call.dtype))


def _log1p(call: Call) -> PrimExpr:
    return operators.call("log", call.dtype, [operators.add(operators.const(1, call.dtype), call.args[0])])


register_rules(
    "webgpu",
    {
        **dict.fromkeys((*_SAME, *_OTHER_NAMES), _call),
        "round": _round,
        "erf": erf,
        "sigmoid": rules.sigmoid,
        "exp10": rules.exp10,
        "log10": _log10,
        "log1p": _log1p,
    },
)
