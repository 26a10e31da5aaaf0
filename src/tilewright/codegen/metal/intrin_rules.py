"""Intrinsics in Metal: mostly as in OpenCL, without an error function."""

from __future__ import annotations

from tilewright.codegen.c.intrin_rules import register_rules
from tilewright.codegen.opencl.intrin_rules import TABLE
from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr, Select
from tilewright.support.dtype import DataType

_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_SCALE = 0.3275911


def erf(call: Call) -> PrimExpr:
    """Abramowitz and Stegun 7.1.26: the error is below 1.5e-7."""
    wide = DataType("float32").with_lanes(call.dtype.lanes)

    def constant(value: float) -> PrimExpr:
        return operators.const(value, wide)

    x = operators.cast(wide, call.args[0])
    size = operators.call("fabs", wide, [x])
    t = operators.div(
        constant(1.0), operators.add(constant(1.0), operators.multiply(constant(_ERF_SCALE), size))
    )
    total: PrimExpr = constant(0.0)
    for coefficient in reversed(_ERF):
        total = operators.multiply(t, operators.add(total, constant(coefficient)))
    falling = operators.call("exp", wide, [operators.negative(operators.multiply(x, x))])
    value = operators.subtract(constant(1.0), operators.multiply(total, falling))
    signed = Select(operators.less(x, constant(0.0)), operators.negative(value), value)
    return operators.cast(call.dtype, signed)


def _hypot(call: Call) -> PrimExpr:
    a, b = call.args
    total = operators.add(operators.multiply(a, a), operators.multiply(b, b))
    return operators.call("sqrt", call.dtype, [total])


def _log1p(call: Call) -> PrimExpr:
    return operators.call("log", call.dtype, [operators.add(operators.const(1, call.dtype), call.args[0])])


register_rules("metal", {**TABLE, "erf": erf, "hypot": _hypot, "log1p": _log1p})
