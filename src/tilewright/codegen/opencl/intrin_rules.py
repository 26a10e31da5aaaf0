"""Intrinsics in OpenCL: one name for all types."""

from __future__ import annotations

from tilewright.codegen.c.intrin_rules import extern_call, register_rules
from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.tir.transform.lib import intrin_rules as rules

_OTHER_NAMES = {"nearbyint": "rint"}


def same_name(call: Call) -> PrimExpr:
    """The built-in function of the intrinsic's name, which is there for every type of float."""
    name = call.op.name.removeprefix("tir.")
    if call.dtype.is_integral:
        if name == "fabs":
            return operators.maximum(call.args[0], operators.negative(call.args[0]))
        return call.args[0]
    return extern_call(call.dtype, _OTHER_NAMES.get(name, name), list(call.args))


def bit_count(call: Call) -> PrimExpr:
    """The built-in function on integers of the intrinsic's name."""
    return extern_call(call.dtype, call.op.name.removeprefix("tir."), list(call.args))


TABLE = {
    **dict.fromkeys((*MATH_UNARY, *MATH_BINARY, "fma"), same_name),
    "sigmoid": rules.sigmoid,
    "isnan": rules.isnan,
    "isinf": rules.isinf,
    "isfinite": rules.isfinite,
    "popcount": bit_count,
    "clz": bit_count,
}

register_rules("opencl", TABLE)
