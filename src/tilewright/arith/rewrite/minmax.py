"""Rules for minimum and maximum. ``extremum(kind, a, b)`` serves both.

Comments describe one of them; the other follows by symmetry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith.pool import Expr, NodeClass, is_index
from tilewright.ir.expr import Add, Broadcast, Div, FloatImm, FloorDiv, IntImm, Max, Min, Mul, Select, Sub

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter


_LONGEST_CHAIN = 8
"""How far a chain of extrema is searched for an operand."""


def extremum(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    """The simplified minimum or maximum of two simplified expressions."""
    if a is b:
        return a
    kind_a, kind_b, dtype = type(a), type(b), a.dtype
    if dtype.lanes > 1:
        if kind_a is Broadcast and kind_b is Broadcast:
            return rw.broadcast(extremum(rw, kind, a.value, b.value), a.lanes)
        if kind_a is kind and type(a.b) is Broadcast and kind_b is Broadcast:
            return rw.make(kind, a.a, rw.broadcast(extremum(rw, kind, a.b.value, b.value), b.lanes))
        return rw.make(kind, a, b)
    if not dtype.is_integral:
        return rw.fold(kind, a, b) if kind_a is FloatImm and kind_b is FloatImm else rw.make(kind, a, b)
    if kind_a is IntImm:
        if kind_b is IntImm:
            return a if (a.value < b.value) is (kind is Min) else b
        a, b, kind_a, kind_b = b, a, kind_b, kind_a
    found = _decide(rw, kind, a, b)
    if found is not None:
        return found
    opposite: NodeClass = Max if kind is Min else Min
    for x, y in ((a, b), (b, a)):
        if type(x) is opposite and (x.a is y or x.b is y):
            return y
        if type(x) is kind and _has_operand(kind, x, y):
            return x
    if kind_a is kind and kind_b is opposite and _same_pair(a, b):
        return a
    if kind_b is kind and kind_a is opposite and _same_pair(a, b):
        return b
    if kind_a in (Min, Max) and kind_a is kind_b:
        shared = shared_operand(a, b)
        if shared is not None:
            common, x, y = shared
            return extremum(rw, kind_a, extremum(rw, kind, x, y), common)
    if kind_a is kind:
        found = _absorb(rw, kind, a, b)
        if found is not None:
            return found
    if kind_b is kind and kind_a is not kind:
        found = _absorb(rw, kind, b, a)
        if found is not None:
            return found
    if not is_index(dtype):
        return rw.make(kind, a, b)
    return _extremum_of_index(rw, kind, a, b)


def _decide(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr | None:
    """The operand that is known to be the extremum."""
    bound_a, bound_b = rw.bound(a), rw.bound(b)
    if bound_a[1] <= bound_b[0]:
        return a if kind is Min else b
    if bound_b[1] <= bound_a[0]:
        return b if kind is Min else a
    if is_index(a.dtype) and type(b) is not IntImm and not _nested(a) and not _nested(b):
        low, high = rw.bound(rw.sub(a, b))
        if high <= 0:
            return a if kind is Min else b
        if low >= 0:
            return b if kind is Min else a
    return None


def _nested(expr: Expr) -> bool:
    """True where a difference would need extrema of extrema."""
    return type(expr) in (Min, Max) and (type(expr.a) in (Min, Max) or type(expr.b) in (Min, Max))


def _has_operand(kind: NodeClass, chain: Expr, operand: Expr) -> bool:
    """True if the operand is one of those of a chain ``min(min(min(x, y), z), ...)``."""
    for _ in range(_LONGEST_CHAIN):
        if chain.a is operand or chain.b is operand:
            return True
        if type(chain.a) is not kind:
            return False
        chain = chain.a
    return False


def _same_pair(a: Expr, b: Expr) -> bool:
    return (a.a is b.a and a.b is b.b) or (a.a is b.b and a.b is b.a)


def shared_operand(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr] | None:
    """The operand that two nodes of two operands share, and the other two."""
    if a.a is b.a:
        return a.a, a.b, b.b
    if a.a is b.b:
        return a.a, a.b, b.a
    if a.b is b.a:
        return a.b, a.a, b.b
    if a.b is b.b:
        return a.b, a.a, b.a
    return None


def _absorb(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr | None:
    """``min(min(x, y), b)`` where ``b`` decides against ``x`` or ``y``, or where a constant moves out."""
    for x, y in ((a.b, a.a), (a.a, a.b)):
        bound_x, bound_b = rw.bound(x), rw.bound(b)
        if type(x) is IntImm and type(b) is IntImm:
            return extremum(rw, kind, y, extremum(rw, kind, x, b))
        winner = _decide(rw, kind, x, b) if type(b) is not IntImm or bound_x[1] <= bound_b[0] else None
        if winner is x:
            return a
        if winner is b:
            return extremum(rw, kind, y, b)
    if type(a.b) is IntImm and type(b) is not IntImm:
        return extremum(rw, kind, extremum(rw, kind, a.a, b), a.b)
    return None


def _extremum_of_index(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    """Rules for index types: what the operands share moves out."""
    kind_a, kind_b, dtype = type(a), type(b), a.dtype
    opposite = Max if kind is Min else Min
    if kind_a is Add and kind_b is Add:
        shared = shared_operand(a, b)
        if shared is not None:
            common, x, y = shared
            return rw.add(extremum(rw, kind, x, y), common)
    if kind_a is Sub and kind_b is Sub:
        if a.b is b.b:
            return rw.sub(extremum(rw, kind, a.a, b.a), a.b)
        if a.a is b.a:
            return rw.sub(a.a, extremum(rw, opposite, a.b, b.b))
    if kind_a is kind_b and kind_a in (Mul, FloorDiv, Div) and type(a.b) is IntImm and type(b.b) is IntImm:
        found = _scaled(rw, kind, a, b)
        if found is not None:
            return found
    if type(b) is IntImm:
        if kind_a is Mul and type(a.b) is IntImm and b.value % a.b.value == 0:
            outer = kind if a.b.value > 0 else opposite
            inner = extremum(rw, outer, a.a, rw.integer(dtype, b.value // a.b.value))
            return rw.mul(inner, a.b)
        if kind_a is Sub and type(a.a) is IntImm:
            return rw.sub(a.a, extremum(rw, opposite, a.b, rw.integer(dtype, a.a.value - b.value)))
    found = _rounded(rw, kind, a, b)
    if found is None:
        found = _rounded(rw, kind, b, a)
    if found is not None:
        return found
    if kind_a is Select and kind_b is Select and a.condition is b.condition:
        return rw.select(
            a.condition,
            extremum(rw, kind, a.true_value, b.true_value),
            extremum(rw, kind, a.false_value, b.false_value),
        )
    return rw.make(kind, a, b)


def _scaled(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr | None:
    """``min(x * c, y * c)`` and ``min(x / c, y / c)``; a negative constant turns the order."""
    if a.b is not b.b or a.b.value == 0:
        return None
    opposite = Max if kind is Min else Min
    inner = extremum(rw, kind if a.b.value > 0 else opposite, a.a, b.a)
    if type(a) is Mul:
        return rw.mul(inner, a.b)
    return rw.floordiv(inner, a.b) if type(a) is FloorDiv else rw.truncdiv(inner, a.b)


def _rounded(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr | None:
    """``min(((x + c) // d) * d, x)``: rounding down is never above ``x``, rounding up never below."""
    if type(a) is not Mul or type(a.b) is not IntImm or a.b.value <= 0:
        return None
    quotient: Expr = a.a
    if type(quotient) not in (FloorDiv, Div) or quotient.b is not a.b:
        return None
    inner, divisor = quotient.a, a.b.value
    if inner is b:
        if type(quotient) is Div and rw.bound(b)[0] < 0:
            return None
        return a if kind is Min else b
    # Truncation rounds up below zero, so that what is said of rounding up holds of it everywhere.
    if type(inner) is Add and type(inner.b) is IntImm and inner.b.value == divisor - 1:
        if inner.a is b:
            return b if kind is Min else a
        # A multiple of d that is not below x is not below max(x, d) either, where x is positive.
        if kind is Min and type(b) is Max and type(b.b) is IntImm and b.a is inner.a and b.b.value == divisor:
            if rw.bound(b.a)[0] > 0:
                return b
    return None


def minimum(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified minimum."""
    return extremum(rw, Min, a, b)


def maximum(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified maximum."""
    return extremum(rw, Max, a, b)
