"""Intrinsics in CUDA."""

from __future__ import annotations

from tilewright.codegen.c.intrin_rules import extern_call, math_rule, register_rules
from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.support.dtype import DataType
from tilewright.tir.transform.lib import intrin_rules as rules


def _popcount(call: Call) -> PrimExpr:
    argument = call.args[0]
    wide = argument.dtype.bits == 64
    unsigned = DataType("uint64" if wide else "uint32").with_lanes(argument.dtype.lanes)
    same_size = DataType(f"uint{argument.dtype.bits}").with_lanes(argument.dtype.lanes)
    bits = operators.cast(unsigned, operators.cast(same_size, argument))
    count = extern_call(
        DataType("int32").with_lanes(call.dtype.lanes), "__popcll" if wide else "__popc", [bits]
    )
    return operators.cast(call.dtype, count)


def _clz(call: Call) -> PrimExpr:
    return extern_call(call.dtype, "__clzll" if call.args[0].dtype.bits == 64 else "__clz", list(call.args))


def _fma(call: Call) -> PrimExpr:
    if call.dtype.bits < 32 or call.dtype.is_integral:
        return operators.add(operators.multiply(call.args[0], call.args[1]), call.args[2])
    return extern_call(call.dtype, "fma" if call.dtype.bits == 64 else "fmaf", list(call.args))


RULES = "cuda_source"
"""The name under which the rules are kept: they are for the text only, not for other code of the target."""

register_rules(
    RULES,
    {
        **dict.fromkeys((*MATH_UNARY, *MATH_BINARY), math_rule),
        "sigmoid": rules.sigmoid,
        "isnan": rules.isnan,
        "isinf": rules.isinf,
        "isfinite": rules.isfinite,
        "popcount": _popcount,
        "clz": _clz,
        "fma": _fma,
    },
)
