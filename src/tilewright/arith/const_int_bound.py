"""Constant bounds of integer expressions.

``bound(e)`` is an inclusive range ``(low, high)`` that contains every value of ``e``; an unknown end is an infinite
float. Index types (int32 and int64) do not overflow. A sum, difference or product of any other type whose bounds exceed
the type's range may have wrapped, and gets the full range of the type.

Known facts about an expression (a bound variable, a condition that holds) are in ``facts`` and tighten the bounds that
follow from its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from tilewright.arith.pool import Expr
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
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tilewright.support.dtype import DataType

LIMIT = (1 << 63) - 1
"""Magnitudes from here on count as infinite, so that every finite end converts to a float without overflow."""

Bound = tuple[float, float]
"""Ends are integers or infinite floats."""

EVERYTHING: Bound = (-inf, inf)


@dataclass(frozen=True, slots=True)
class ConstIntBound:
    """The values from ``min_value`` to ``max_value``, ends included.

    ``NEG_INF`` and ``POS_INF`` stand for ends that are not known.
    """

    min_value: int
    max_value: int

    POS_INF: ClassVar[int] = LIMIT
    NEG_INF: ClassVar[int] = -LIMIT

    @staticmethod
    def of(bound: Bound) -> ConstIntBound:
        """The public form of a pair."""
        low, high = bound
        return ConstIntBound(
            ConstIntBound.NEG_INF if low == -inf else int(low),
            ConstIntBound.POS_INF if high == inf else int(high),
        )

    def pair(self) -> Bound:
        """The internal form."""
        return (
            -inf if self.min_value <= self.NEG_INF else self.min_value,
            inf if self.max_value >= self.POS_INF else self.max_value,
        )


_type_bounds: dict[DataType, Bound] = {}


def type_bound(dtype: DataType) -> Bound:
    """The range of a type; everything for types that are not integers."""
    found = _type_bounds.get(dtype)
    if found is None:
        if dtype.is_uint:
            found = (0, (1 << dtype.bits) - 1 if dtype.bits < 63 else inf)
        elif dtype.is_int and dtype.bits < 64:
            found = (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        else:
            found = EVERYTHING
        _type_bounds[dtype] = found
    return found


def finish(low: float, high: float, dtype: DataType) -> Bound:
    """The bounds of arithmetic in a type: large ends are infinite, and a type that may have wrapped knows nothing."""
    if low <= -LIMIT:
        low = -inf
    if high >= LIMIT:
        high = inf
    if not (dtype.is_int and dtype.bits >= 32):
        whole = type_bound(dtype)
        if low < whole[0] or high > whole[1]:
            return whole
    return low, high


def times(a: float, b: float) -> float:
    """A product in which zero times infinity is zero, and any other number times infinity infinite."""
    if not a or not b:
        return 0
    # An integer may be too large to become the float that infinity is.
    if a in (inf, -inf) or b in (inf, -inf):
        return inf if (a > 0) == (b > 0) else -inf
    return a * b


def product(a: Bound, b: Bound) -> Bound:
    """The bounds of a product."""
    if b[0] == b[1]:
        factor = b[0]
        return (
            (times(a[0], factor), times(a[1], factor))
            if factor >= 0
            else (times(a[1], factor), times(a[0], factor))
        )
    corners = (times(a[0], b[0]), times(a[0], b[1]), times(a[1], b[0]), times(a[1], b[1]))
    return min(corners), max(corners)


def floor_quotient(a: float, b: float) -> float:
    """``floor(a / b)`` where either may be infinite and ``b`` is not zero."""
    if a in (inf, -inf):
        return a if b > 0 else -a
    if b in (inf, -inf):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return a // b


def trunc_quotient(a: float, b: float) -> float:
    """``a / b`` rounded towards zero where either may be infinite and ``b`` is not zero."""
    if a in (inf, -inf):
        return a if b > 0 else -a
    if b in (inf, -inf):
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def quotient_bound(a: Bound, b: Bound, quotient: Callable[[float, float], float]) -> Bound:
    """The bounds of a quotient; a divisor is never zero."""
    low, high = b
    if low == high and low > 0:
        return quotient(a[0], low), quotient(a[1], low)
    divisors = [value for value in (low, high) if value]
    if low < 0 < high:
        divisors += [-1, 1]
    elif low == 0 < high:
        divisors.append(1)
    elif low < 0 == high:
        divisors.append(-1)
    if not divisors:
        return EVERYTHING
    corners = [quotient(end, divisor) for end in a for divisor in divisors]
    return min(corners), max(corners)


def floor_remainder_bound(a: Bound, b: Bound) -> Bound:
    """The bounds of ``FloorMod``."""
    low, high = a
    if b[0] > 0:
        if low >= 0 and high < b[0]:
            return a
        if b[0] == b[1] and -inf < low and high < inf and low // b[0] == high // b[0]:
            return low % b[0], high % b[0]
        return 0, min(b[1] - 1, high) if low >= 0 else b[1] - 1
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def trunc_remainder_bound(a: Bound, b: Bound) -> Bound:
    """The bounds of ``Mod``: the sign of the dividend, a magnitude below the divisor's."""
    low, high = a
    if b[0] > 0 and low >= 0 and high < b[0]:
        return a
    cap = max(abs(b[0]), abs(b[1])) - 1
    return 0 if low >= 0 else max(low, -cap), 0 if high <= 0 else min(high, cap)


class BoundAnalyzer:
    """Computes bounds. ``memo`` and ``facts`` belong to the present scope; see ``Analyzer.constraint_scope``."""

    __slots__ = ("facts", "memo", "variables")

    def __init__(self) -> None:
        self.variables: dict[Var, Bound] = {}
        self.facts: dict[Expr, Bound] = {}
        self.memo: dict[Expr, Bound] = {}

    def bound(self, node: Expr) -> Bound:
        """The bounds of an interned expression."""
        found = self.memo.get(node)
        if found is not None:
            return found
        handler = _HANDLERS.get(type(node))
        made = type_bound(node.dtype) if handler is None else handler(self, node)
        if self.facts:
            fact = self.facts.get(node)
            if fact is not None:
                low, high = max(made[0], fact[0]), min(made[1], fact[1])
                if low <= high:
                    made = (low, high)
        self.memo[node] = made
        return made

    def _var(self, node: Var) -> Bound:
        found = self.variables.get(node)
        if found is None:
            found = type_bound(node.dtype)
            if isinstance(node, SizeVar):
                found = (0, found[1])
        return found

    def _integer(self, node: IntImm) -> Bound:
        return node.value, node.value

    def _add(self, node: Add) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return finish(a[0] + b[0], a[1] + b[1], node.dtype)

    def _sub(self, node: Sub) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return finish(a[0] - b[1], a[1] - b[0], node.dtype)

    def _mul(self, node: Mul) -> Bound:
        low, high = product(self.bound(node.a), self.bound(node.b))
        if node.a is node.b:
            low = max(low, 0)
        return finish(low, high, node.dtype)

    def _div(self, node: Div) -> Bound:
        if not node.dtype.is_integral:
            return EVERYTHING
        return finish(*quotient_bound(self.bound(node.a), self.bound(node.b), trunc_quotient), node.dtype)

    def _mod(self, node: Mod) -> Bound:
        return trunc_remainder_bound(self.bound(node.a), self.bound(node.b))

    def _floor_div(self, node: FloorDiv) -> Bound:
        return finish(*quotient_bound(self.bound(node.a), self.bound(node.b), floor_quotient), node.dtype)

    def _floor_mod(self, node: FloorMod) -> Bound:
        return floor_remainder_bound(self.bound(node.a), self.bound(node.b))

    def _min(self, node: Min) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return min(a[0], b[0]), min(a[1], b[1])

    def _max(self, node: Max) -> Bound:
        a, b = self.bound(node.a), self.bound(node.b)
        return max(a[0], b[0]), max(a[1], b[1])

    def _truth(self, node: PrimExpr) -> Bound:
        return 0, 1

    def _select(self, node: Select) -> Bound:
        return union(self.bound(node.true_value), self.bound(node.false_value))

    def _cast(self, node: Cast) -> Bound:
        whole = type_bound(node.dtype)
        if not node.value.dtype.is_integral:
            return whole
        if node.dtype.is_bool:
            return 0, 1
        inner = self.bound(node.value)
        if inner[1] == inf and node.value.dtype.is_uint and not node.dtype.is_uint:
            # Numbers of 64 bits may become negative.
            return whole
        return inner if whole[0] <= inner[0] and inner[1] <= whole[1] else whole

    def _broadcast(self, node: Broadcast) -> Bound:
        return self.bound(node.value)

    def _ramp(self, node: Ramp) -> Bound:
        base, stride = self.bound(node.base), self.bound(node.stride)
        last = product(stride, (node.lanes - 1, node.lanes - 1))
        return finish(base[0] + min(0, last[0]), base[1] + max(0, last[1]), node.dtype)

    def _let(self, node: Let) -> Bound:
        # A variable of a Let is defined once, so what is learnt of it may stay.
        self.variables[node.var] = self.bound(node.value)
        return self.bound(node.body)

    def _call(self, node: Call) -> Bound:
        handler = _CALLS.get(getattr(node.op, "name", ""))
        whole = type_bound(node.dtype)
        if handler is None or not node.dtype.is_integral:
            return whole
        return handler(self, node)

    def _shift_right(self, node: Call) -> Bound:
        a, count = self.bound(node.args[0]), self.bound(node.args[1])
        if count[0] < 0 or count[1] > 63:
            return type_bound(node.dtype)
        ends = [floor_quotient(end, 1 << int(shift)) for end in a for shift in count]
        return min(ends), max(ends)

    def _shift_left(self, node: Call) -> Bound:
        a, count = self.bound(node.args[0]), self.bound(node.args[1])
        if count[0] < 0 or count[1] > 63:
            return type_bound(node.dtype)
        return finish(*product(a, (1 << int(count[0]), 1 << int(count[1]))), node.dtype)

    def _bitwise_and(self, node: Call) -> Bound:
        a, b = self.bound(node.args[0]), self.bound(node.args[1])
        if a[0] >= 0 or b[0] >= 0:
            return 0, min(end[1] for end in (a, b) if end[0] >= 0)
        return type_bound(node.dtype)

    def _annotation(self, node: Call) -> Bound:
        return self.bound(node.args[0])

    def _if_then_else(self, node: Call) -> Bound:
        return union(self.bound(node.args[1]), self.bound(node.args[2]))


def union(a: Bound, b: Bound) -> Bound:
    """The least bounds that contain both."""
    return min(a[0], b[0]), max(a[1], b[1])


_HANDLERS: dict[type, Callable[[BoundAnalyzer, Expr], Bound]] = {
    Var: BoundAnalyzer._var,
    SizeVar: BoundAnalyzer._var,
    IntImm: BoundAnalyzer._integer,
    Add: BoundAnalyzer._add,
    Sub: BoundAnalyzer._sub,
    Mul: BoundAnalyzer._mul,
    Div: BoundAnalyzer._div,
    Mod: BoundAnalyzer._mod,
    FloorDiv: BoundAnalyzer._floor_div,
    FloorMod: BoundAnalyzer._floor_mod,
    Min: BoundAnalyzer._min,
    Max: BoundAnalyzer._max,
    Select: BoundAnalyzer._select,
    Cast: BoundAnalyzer._cast,
    Broadcast: BoundAnalyzer._broadcast,
    Ramp: BoundAnalyzer._ramp,
    Let: BoundAnalyzer._let,
    Call: BoundAnalyzer._call,
}
for _truth in (EQ, NE, LT, LE, GT, GE, And, Or, Not):
    _HANDLERS[_truth] = BoundAnalyzer._truth

_CALLS: dict[str, Callable[[BoundAnalyzer, Call], Bound]] = {
    "tir.shift_right": BoundAnalyzer._shift_right,
    "tir.shift_left": BoundAnalyzer._shift_left,
    "tir.bitwise_and": BoundAnalyzer._bitwise_and,
    "tir.likely": BoundAnalyzer._annotation,
    "tir.if_then_else": BoundAnalyzer._if_then_else,
}
