"""Averages of integers, rounded to the nearest."""

from __future__ import annotations

from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call, const
from tilewright.relay.op.calls import call
from tilewright.relay.qnn.integers.affine import Affine, integer_rule, saturated, scalar, scalar_type

_AVERAGES: Final = (
    *("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d"),
    "mean",
)


@integer_rule(*_AVERAGES)
def _average(expr: Call, affine: dict[RelayExpr, Affine]) -> list[Any]:
    """The average of shifted integers as real numbers, rounded: a border of zeros is the zero point then."""
    kind = scalar_type(affine[expr.args[0]])
    zero = int(scalar(kind.zero_point).reshape(-1)[0])
    data = call("cast", expr.args[0], dtype="float32")
    if zero:
        data = call("subtract", data, const(float(zero), "float32"))
    average = Call(expr.op, (data,), expr.attrs)
    rounded = call("cast", call("round", average), dtype="int32")
    if zero:
        rounded = call("add", rounded, const(zero, "int32"))
    return [saturated(rounded, kind.dtype), kind]
