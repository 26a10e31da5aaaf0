"""Intrinsics in C: functions of ``math.h``, and builtins that gcc and clang share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.ir.op import register_intrin_lowering
from tilewright.support.dtype import DataType
from tilewright.tir.transform.lib import intrin_rules as rules

Rule = Callable[[Call], PrimExpr | None]

_WITHOUT_C_FUNCTION = {"sigmoid": rules.sigmoid, "rsqrt": rules.rsqrt, "exp10": rules.exp10}
_TESTS = {"isnan": rules.isnan, "isinf": rules.isinf, "isfinite": rules.isfinite}


def extern_call(dtype: DataType, name: str, args: list[PrimExpr]) -> PrimExpr:
    """A call of a function without effects."""
    return operators.call("call_pure_extern", dtype, [name, *args])


def in_float32(call: Call) -> PrimExpr:
    """The same call on float32, for types without their own function."""
    wide = DataType("float32").with_lanes(call.dtype.lanes)
    args = [operators.cast(wide, argument) if argument.dtype.is_float else argument for argument in call.args]
    return operators.cast(call.dtype, operators.call(call.op.name.removeprefix("tir."), wide, args))


def math_rule(call: Call) -> PrimExpr:
    """``expf`` for float32, ``exp`` for float64, and through float32 for float16."""
    name = call.op.name.removeprefix("tir.")
    if call.dtype.is_integral:
        if name == "fabs":
            zero = operators.const(0, call.dtype)
            return operators.maximum(call.args[0], operators.subtract(zero, call.args[0]))
        return call.args[0]
    if call.dtype.bits < 32:
        return in_float32(call)
    return extern_call(call.dtype, name if call.dtype.bits == 64 else f"{name}f", list(call.args))


def _popcount(call: Call) -> PrimExpr:
    bits = operators.cast(DataType("uint64").with_lanes(call.dtype.lanes), _unsigned(call.args[0]))
    return operators.cast(call.dtype, extern_call(bits.dtype, "__builtin_popcountll", [bits]))


def _clz(call: Call) -> PrimExpr:
    name = "__builtin_clzll" if call.args[0].dtype.bits == 64 else "__builtin_clz"
    return extern_call(call.dtype, name, list(call.args))


def _unsigned(value: PrimExpr) -> PrimExpr:
    """The same bits as an unsigned number, so that widening adds zeros."""
    if value.dtype.is_uint:
        return value
    return operators.cast(DataType(f"uint{value.dtype.bits}").with_lanes(value.dtype.lanes), value)


def _fma(call: Call) -> PrimExpr:
    if call.dtype.bits < 32 or call.dtype.is_integral:
        return operators.add(operators.multiply(call.args[0], call.args[1]), call.args[2])
    return extern_call(call.dtype, "fma" if call.dtype.bits == 64 else "fmaf", list(call.args))


def register_rules(target: str, table: Mapping[str, Rule]) -> None:
    """Register rules for a kind of target."""
    for name, rule in table.items():
        register_intrin_lowering(f"tir.{name}", target, f=rule)


register_rules(
    "c",
    {
        **dict.fromkeys((*MATH_UNARY, *MATH_BINARY), math_rule),
        **_WITHOUT_C_FUNCTION,
        **_TESTS,
        "popcount": _popcount,
        "clz": _clz,
        "fma": _fma,
    },
)
