"""The value of an index or a condition where its variables have given values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
)

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b if b else None,
    FloorMod: lambda a, b: a % b if b else None,
    Min: min,
    Max: max,
    EQ: lambda a, b: int(a == b),
    NE: lambda a, b: int(a != b),
    LT: lambda a, b: int(a < b),
    LE: lambda a, b: int(a <= b),
    GT: lambda a, b: int(a > b),
    GE: lambda a, b: int(a >= b),
    And: lambda a, b: int(bool(a) and bool(b)),
    Or: lambda a, b: int(bool(a) or bool(b)),
}


def index_value(expr: PrimExpr, values: Mapping[Var, int], lane: int = 0) -> int | None:
    """The value of one lane; None where it depends on anything but these variables and constants."""
    return _Values(values, lane).of(expr)


class _Values:
    def __init__(self, values: Mapping[Var, int], lane: int) -> None:
        self.values = values
        self.lane = lane
        self.known: dict[int, int | None] = {}

    def of(self, expr: Any) -> int | None:
        if id(expr) not in self.known:
            self.known[id(expr)] = self._found(expr)
        return self.known[id(expr)]

    def _found(self, expr: Any) -> int | None:
        operation = _BINARY.get(type(expr))
        if operation is not None:
            return self._together(operation, expr.a, expr.b)
        if isinstance(expr, IntImm):
            return expr.value
        if isinstance(expr, Var):
            return self.values.get(expr)
        if isinstance(expr, Ramp):
            return self._together(lambda base, stride: base + stride * self.lane, expr.base, expr.stride)
        if isinstance(expr, Broadcast):
            return self.of(expr.value)
        if isinstance(expr, Not):
            return self._together(lambda a, b: int(not a), expr.a, expr.a)
        if isinstance(expr, Select):
            condition = self.of(expr.condition)
            return None if condition is None else self.of(expr.true_value if condition else expr.false_value)
        if isinstance(expr, Cast) and expr.dtype.is_int and expr.value.dtype.is_integral:
            value = self.of(expr.value)
            limit = 1 << (expr.dtype.bits - 1)
            return value if value is not None and -limit <= value < limit else None
        if isinstance(expr, Call) and getattr(expr.op, "name", "") == "tir.likely":
            return self.of(expr.args[0])
        return None

    def _together(self, operation: Callable[[int, int], Any], first: Any, second: Any) -> int | None:
        a, b = self.of(first), self.of(second)
        return None if a is None or b is None else operation(a, b)
