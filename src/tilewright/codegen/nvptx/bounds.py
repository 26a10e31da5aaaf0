"""The range of an index, to compute it in 32 bits where it fits: a GPU adds and multiplies 64 bits at half the speed.

Unlike the analyzer's bounds these do not wrap at the type's ends. An index is the mathematical number, as on the CPU: a
tensor of more than 2**31 elements is addressed rightly with indices of 32 bits.
"""

from __future__ import annotations

from typing import Any, Final

from tilewright.ir.expr import (
    Add,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    Select,
    Sub,
    Var,
)
from tilewright.support.dtype import DataType

Bound = tuple[int, int]
_INT32: Final[Bound] = (-(1 << 31), (1 << 31) - 1)


class IndexBounds:
    """Bounds of integer expressions, given those of variables."""

    def __init__(self) -> None:
        self._variables: dict[Var, Bound] = {}
        self._memo: dict[int, tuple[PrimExpr, Bound]] = {}
        self._narrow: dict[int, tuple[PrimExpr, bool]] = {}

    def bind(self, var: Var, low: int, high: int) -> None:
        """A variable is from ``low`` to ``high``, both included."""
        self._variables[var] = (low, max(low, high))

    def bind_range(self, var: Var, low: PrimExpr, extent: PrimExpr) -> None:
        """A variable runs over a range."""
        first, count = self.bound(low), self.bound(extent)
        type_low, type_high = _of_type(var.dtype)
        self.bind(var, max(first[0], type_low), min(first[1] + count[1] - 1, type_high))

    def bind_value(self, var: Var, value: PrimExpr) -> None:
        """A variable stands for a value, which its type holds."""
        (low, high), (type_low, type_high) = self.bound(value), _of_type(var.dtype)
        self.bind(var, max(low, type_low), min(high, type_high))

    def bound(self, expr: PrimExpr) -> Bound:
        """The least and the largest value."""
        found = self._memo.get(id(expr))
        if found is None:
            found = self._memo[id(expr)] = (expr, self._bound(expr))
        return found[1]

    def is_narrow(self, expr: PrimExpr) -> bool:
        """True if an index and every part of it, down to what is not a sum or a product, fits 32 bits."""
        found = self._narrow.get(id(expr))
        if found is None:
            low, high = self.bound(expr)
            fits = _INT32[0] <= low and high <= _INT32[1]
            if fits and isinstance(expr, (Add, Sub, Mul)):
                fits = self.is_narrow(expr.a) and self.is_narrow(expr.b)
            found = self._narrow[id(expr)] = (expr, fits)
        return found[1]

    def is_natural(self, expr: PrimExpr) -> bool:
        """True if the value is never negative."""
        return self.bound(expr)[0] >= 0

    def _bound(self, expr: PrimExpr) -> Bound:
        if isinstance(expr, IntImm):
            return expr.value, expr.value
        if isinstance(expr, Var):
            return self._variables.get(expr) or _of_type(expr.dtype)
        handler = _HANDLERS.get(type(expr))
        if handler is not None:
            found: Bound | None = handler(self, expr)
            if found is not None:
                return found
        return _of_type(expr.dtype)

    def _add(self, node: Any) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return a[0] + b[0], a[1] + b[1]

    def _sub(self, node: Any) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return a[0] - b[1], a[1] - b[0]

    def _mul(self, node: Any) -> Bound:
        ends = [x * y for x in self.bound(node.a) for y in self.bound(node.b)]
        return min(ends), max(ends)

    def _quotient(self, node: Any) -> Bound | None:
        low, high = self.bound(node.a)
        divisor = self.bound(node.b)
        return (low // divisor[1], high // divisor[0]) if low >= 0 and divisor[0] > 0 else None

    def _remainder(self, node: Any) -> Bound | None:
        low, high = self.bound(node.a)
        divisor = self.bound(node.b)
        if divisor[0] <= 0 or (low < 0 and not isinstance(node, FloorMod)):
            return None
        return 0, min(divisor[1] - 1, high) if low >= 0 else divisor[1] - 1

    def _min(self, node: Any) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return min(a[0], b[0]), min(a[1], b[1])

    def _max(self, node: Any) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return max(a[0], b[0]), max(a[1], b[1])

    def _either(self, a: Bound, b: Bound) -> Bound:
        return min(a[0], b[0]), max(a[1], b[1])

    def _select(self, node: Any) -> Bound:
        return self._either(self.bound(node.true_value), self.bound(node.false_value))

    def _cast(self, node: Any) -> Bound | None:
        if not node.value.dtype.is_integral:
            return None
        low, high = self.bound(node.value)
        own = _of_type(node.dtype)
        return (low, high) if own[0] <= low and high <= own[1] else None

    def _call(self, node: Any) -> Bound | None:
        name = getattr(node.op, "name", "")
        if name == "tir.if_then_else":
            return self._either(self.bound(node.args[1]), self.bound(node.args[2]))
        if name == "tir.likely":
            return self.bound(node.args[0])
        if name == "tir.bitwise_and" and isinstance(node.args[1], IntImm) and node.args[1].value >= 0:
            return 0, node.args[1].value
        if name in ("tir.bitwise_xor", "tir.bitwise_or"):
            (low, high), (other_low, other_high) = (self.bound(one) for one in node.args[:2])
            return (0, (1 << max(high, other_high).bit_length()) - 1) if min(low, other_low) >= 0 else None
        if name == "tir.shift_right" and isinstance(node.args[1], IntImm):
            low, high = self.bound(node.args[0])
            return low >> node.args[1].value, high >> node.args[1].value
        return None


_HANDLERS: Final[dict[type, Any]] = {
    Add: IndexBounds._add,
    Sub: IndexBounds._sub,
    Mul: IndexBounds._mul,
    Div: IndexBounds._quotient,
    FloorDiv: IndexBounds._quotient,
    Mod: IndexBounds._remainder,
    FloorMod: IndexBounds._remainder,
    Min: IndexBounds._min,
    Max: IndexBounds._max,
    Select: IndexBounds._select,
    Cast: IndexBounds._cast,
    Call: IndexBounds._call,
}


def _of_type(dtype: DataType) -> Bound:
    if dtype.is_uint:
        return 0, (1 << dtype.bits) - 1
    return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
