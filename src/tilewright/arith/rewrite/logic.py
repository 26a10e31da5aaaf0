"""Rules for and, or, not and select."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith.pool import FALSE, TRUE, Expr
from tilewright.ir.expr import EQ, GE, GT, LE, LT, NE, And, Broadcast, IntImm, Not, Or, Select

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter


def logical_not(rw: Rewriter, a: Expr) -> Expr:
    """The simplified opposite of a simplified condition."""
    kind = type(a)
    if kind is IntImm:
        return FALSE if a.value else TRUE
    if kind is Not:
        return a.a
    if kind is Broadcast:
        return rw.broadcast(rw.logical_not(a.value), a.lanes)
    if kind is EQ:
        return rw.known(rw.make(NE, a.a, a.b))
    if kind is NE:
        return rw.known(rw.make(EQ, a.a, a.b))
    if kind in (LT, LE, GT, GE) and a.a.dtype.is_integral:
        if kind is LT:
            return rw.known(rw.make(LE, a.b, a.a))
        if kind is LE:
            return rw.known(rw.make(LT, a.b, a.a))
        return rw.known(rw.make(LE if kind is GT else LT, a.a, a.b))
    if kind is And:
        return rw.logical_or(rw.logical_not(a.a), rw.logical_not(a.b))
    if kind is Or:
        return rw.logical_and(rw.logical_not(a.a), rw.logical_not(a.b))
    return rw.known(rw.adopt(Not(a)))


def logical_and(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified conjunction of two simplified conditions."""
    if type(a) is IntImm:
        return b if a.value else a
    if type(b) is IntImm:
        return a if b.value else b
    if a is b:
        return a
    if type(a) is Broadcast and type(b) is Broadcast:
        return rw.broadcast(rw.logical_and(a.value, b.value), a.lanes)
    if _opposite(a, b) or _disjoint(a, b):
        return _in_every_lane(rw, FALSE, a)
    if _implies(a, b):
        return a
    if _implies(b, a):
        return b
    return rw.known(rw.make(And, a, b))


def logical_or(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified disjunction of two simplified conditions."""
    if type(a) is IntImm:
        return a if a.value else b
    if type(b) is IntImm:
        return b if b.value else a
    if a is b:
        return a
    if type(a) is Broadcast and type(b) is Broadcast:
        return rw.broadcast(rw.logical_or(a.value, b.value), a.lanes)
    if _opposite(a, b) or _exhaustive(a, b):
        return _in_every_lane(rw, TRUE, a)
    if _implies(a, b):
        return b
    if _implies(b, a):
        return a
    return rw.known(rw.make(Or, a, b))


def _in_every_lane(rw: Rewriter, truth: Expr, condition: Expr) -> Expr:
    """The truth of a condition that is a constant, in as many lanes."""
    lanes = condition.dtype.lanes
    return rw.broadcast(truth, lanes) if lanes > 1 else truth


def _opposite(a: Expr, b: Expr) -> bool:
    """True if one is the negation of the other, in plain sight."""
    kind_a, kind_b = type(a), type(b)
    if kind_a is Not:
        return a.a is b
    if kind_b is Not:
        return b.a is a
    if a.dtype.lanes > 1:
        return False
    if (kind_a is EQ and kind_b is NE) or (kind_a is NE and kind_b is EQ):
        return a.a is b.a and a.b is b.b
    if (kind_a is LT and kind_b is LE) or (kind_a is LE and kind_b is LT):
        return a.a is b.b and a.b is b.a and a.a.dtype.is_integral
    return False


Interval = tuple[Expr, int | None, int | None]


def _interval(a: Expr) -> Interval | None:
    """``(x, low, high)`` of a condition that says ``low <= x <= high`` with constants; None for an open end."""
    kind = type(a)
    if kind not in (EQ, LT, LE) or not a.a.dtype.is_integral:
        return None
    if type(a.b) is IntImm:
        limit = a.b.value
        return (a.a, limit, limit) if kind is EQ else (a.a, None, limit - 1 if kind is LT else limit)
    if type(a.a) is IntImm and kind is not EQ:
        return a.b, a.a.value + 1 if kind is LT else a.a.value, None
    return None


def _disjoint(a: Expr, b: Expr) -> bool:
    """True if two conditions on one expression exclude each other."""
    first, second = _interval(a), _interval(b)
    if first is None or second is None or first[0] is not second[0]:
        return False
    return _below(first, second) or _below(second, first)


def _below(a: Interval, b: Interval) -> bool:
    return a[2] is not None and b[1] is not None and a[2] < b[1]


def _exhaustive(a: Expr, b: Expr) -> bool:
    """True if one of two conditions on one expression always holds."""
    first, second = _interval(a), _interval(b)
    if first is None or second is None or first[0] is not second[0]:
        return False
    return _meets(first, second) or _meets(second, first)


def _meets(a: Interval, b: Interval) -> bool:
    """True if ``x <= high`` or ``x >= low`` with no gap between."""
    if a[1] is not None or b[2] is not None or a[2] is None or b[1] is None:
        return False
    return a[2] + 1 >= b[1]


def _implies(a: Expr, b: Expr) -> bool:
    """True if the first condition on an expression is narrower than the second."""
    first = _interval(a)
    if first is None:
        return False
    if type(b) is NE and type(b.b) is IntImm and b.a is first[0]:
        value = b.b.value
        return (first[1] is not None and value < first[1]) or (first[2] is not None and value > first[2])
    second = _interval(b)
    if second is None or first[0] is not second[0]:
        return False
    low = second[1] is None or (first[1] is not None and first[1] >= second[1])
    high = second[2] is None or (first[2] is not None and first[2] <= second[2])
    return low and high


def select(rw: Rewriter, condition: Expr, true_value: Expr, false_value: Expr) -> Expr:
    """The simplified choice between two simplified values."""
    if type(condition) is IntImm:
        return true_value if condition.value else false_value
    if true_value is false_value:
        return true_value
    if type(condition) is Broadcast and type(condition.value) is IntImm:
        return true_value if condition.value.value else false_value
    return rw.adopt(Select(condition, true_value, false_value))
