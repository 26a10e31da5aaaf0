"""Rules for comparisons. ``a > b`` becomes ``b < a`` and ``a >= b`` becomes ``b <= a``; constants move to one side.

``a <= b`` is simplified as ``not (b < a)``, and ``a != b`` as ``not (a == b)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith.pool import FALSE, TRUE, Expr, NodeClass, is_index
from tilewright.ir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    Broadcast,
    Div,
    FloatImm,
    FloorDiv,
    IntImm,
    Max,
    Min,
    Mul,
    Select,
    Sub,
)

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter


def eq(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a == b``."""
    dtype = a.dtype
    if dtype.lanes > 1:
        return _vector(rw, EQ, a, b)
    if not dtype.is_integral:
        return rw.fold(EQ, a, b) if type(a) is FloatImm and type(b) is FloatImm else rw.make(EQ, a, b)
    if a is b:
        return TRUE
    if type(a) is IntImm:
        if type(b) is IntImm:
            return TRUE if a.value == b.value else FALSE
        a, b = b, a
    bound_a, bound_b = rw.bound(a), rw.bound(b)
    if bound_a[1] < bound_b[0] or bound_b[1] < bound_a[0]:
        return FALSE
    if not is_index(dtype):
        return rw.known(rw.make(EQ, a, b))
    difference = rw.sub(a, b)
    low, high = rw.bound(difference)
    if low > 0 or high < 0:
        return FALSE
    if low == 0 == high:
        return TRUE
    coefficient, base = rw.modular(difference)
    if base % coefficient if coefficient else base:
        return FALSE
    if type(b) is IntImm:
        return rw.known(_equal_constant(rw, a, b))
    left, right = sides(rw, difference)
    if type(left) is IntImm or type(right) is IntImm:
        return rw.eq(left, right)
    return rw.known(rw.make(EQ, left, right))


def _equal_constant(rw: Rewriter, a: Expr, b: IntImm) -> Expr:
    """``a == c`` with what can move to the right moved."""
    kind, dtype = type(a), a.dtype
    if kind is Add and type(a.b) is IntImm:
        return rw.eq(a.a, rw.integer(dtype, b.value - a.b.value))
    if kind is Sub:
        if type(a.a) is IntImm:
            return rw.eq(a.b, rw.integer(dtype, a.a.value - b.value))
        if b.value == 0:
            return rw.eq(a.a, a.b)
    if kind is Mul:
        if type(a.b) is IntImm:
            # The congruence above has shown that the constant divides.
            return rw.eq(a.a, rw.integer(dtype, b.value // a.b.value)) if a.b.value else rw.make(EQ, a, b)
        if b.value == 0:
            return rw.logical_or(rw.eq(a.a, b), rw.eq(a.b, b))
    if kind is Select and (type(a.true_value) is IntImm or type(a.false_value) is IntImm):
        return _select_test(rw, EQ, a, b)
    return rw.make(EQ, a, b)


def _select_test(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    """A comparison of a Select with a constant, on either side, where the branches decide it."""
    compare = rw.eq if kind is EQ else rw.lt
    if type(a) is Select:
        choice, when_true, when_false = a, compare(a.true_value, b), compare(a.false_value, b)
    else:
        choice, when_true, when_false = b, compare(a, b.true_value), compare(a, b.false_value)
    if type(when_true) is IntImm and type(when_false) is IntImm:
        if when_true is when_false:
            return when_true
        return choice.condition if when_true is TRUE else rw.logical_not(choice.condition)
    return rw.make(kind, a, b)


def lt(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a < b``."""
    dtype = a.dtype
    if dtype.lanes > 1:
        return _vector(rw, LT, a, b)
    if not dtype.is_integral:
        return rw.fold(LT, a, b) if type(a) is FloatImm and type(b) is FloatImm else rw.make(LT, a, b)
    if a is b:
        return FALSE
    bound_a, bound_b = rw.bound(a), rw.bound(b)
    if bound_a[1] < bound_b[0]:
        return TRUE
    if bound_a[0] >= bound_b[1]:
        return FALSE
    if not is_index(dtype):
        return rw.known(rw.make(LT, a, b))
    if type(b) is IntImm:
        return rw.known(_less_than_constant(rw, a, b))
    if type(a) is IntImm:
        return rw.known(_constant_less(rw, a, b))
    difference = rw.sub(a, b)
    low, high = rw.bound(difference)
    if high < 0:
        return TRUE
    if low >= 0:
        return FALSE
    left, right = sides(rw, difference)
    if type(left) is IntImm or type(right) is IntImm:
        return rw.lt(left, right)
    return rw.known(_less(rw, left, right))


def sides(rw: Rewriter, difference: Expr) -> tuple[Expr, Expr]:
    """The left and right side of the comparison of a simplified difference with zero.

    A constant goes to the right.
    """
    core: Expr = difference
    offset = 0
    if type(core) is Add and type(core.b) is IntImm:
        core, offset = core.a, core.b.value
    if type(core) is Sub:
        return core.a, rw.add(core.b, rw.integer(core.dtype, -offset))
    return core, rw.integer(core.dtype, -offset)


def _less(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """``a < b``, neither constant, that bounds do not decide and in which nothing cancels."""
    kind_a = type(a)
    if kind_a is Mul and type(a.a) is FloorDiv and type(a.b) is IntImm and a.a.b is a.b:
        # (x // c) * c < x: the remainder is not zero.
        if a.a.a is b and a.b.value > 0:
            return rw.lt(rw.integer(a.dtype, 0), rw.floormod(b, a.b))
    return _less_extremum(rw, a, b, kind_a, type(b))


def _less_extremum(rw: Rewriter, a: Expr, b: Expr, kind_a: NodeClass, kind_b: NodeClass) -> Expr:
    """A minimum is below what one operand is below; a maximum is below what both are below."""
    if kind_a is Min:
        return rw.logical_or(rw.lt(a.a, b), rw.lt(a.b, b))
    if kind_a is Max:
        return rw.logical_and(rw.lt(a.a, b), rw.lt(a.b, b))
    if kind_b is Min:
        return rw.logical_and(rw.lt(a, b.a), rw.lt(a, b.b))
    if kind_b is Max:
        return rw.logical_or(rw.lt(a, b.a), rw.lt(a, b.b))
    return rw.make(LT, a, b)


def _less_than_constant(rw: Rewriter, a: Expr, b: IntImm) -> Expr:
    """``a < c``."""
    kind, dtype, limit = type(a), a.dtype, b.value
    if kind is Add and type(a.b) is IntImm:
        return rw.lt(a.a, rw.integer(dtype, limit - a.b.value))
    if kind is Sub:
        if type(a.a) is IntImm:
            return rw.lt(rw.integer(dtype, a.a.value - limit), a.b)
        if limit == 0:
            return rw.lt(a.a, a.b)
    if kind is Mul and type(a.b) is IntImm and a.b.value != 0:
        factor = a.b.value
        if factor > 0:
            return rw.lt(a.a, rw.integer(dtype, -((-limit) // factor)))
        # x * f < c is x > c / f, and x is an integer.
        return rw.lt(rw.integer(dtype, limit // factor), a.a)
    if kind is FloorDiv and type(a.b) is IntImm and a.b.value > 0:
        return rw.lt(a.a, rw.integer(dtype, a.b.value * limit))
    if kind is Div and type(a.b) is IntImm and a.b.value > 0:
        if limit > 0 or rw.bound(a.a)[0] >= 0:
            return rw.lt(a.a, rw.integer(dtype, a.b.value * limit))
        return rw.lt(a.a, rw.integer(dtype, a.b.value * (limit - 1) + 1))
    if kind is Select:
        return _select_test(rw, LT, a, b)
    return _less_extremum(rw, a, b, kind, IntImm)


def _constant_less(rw: Rewriter, a: IntImm, b: Expr) -> Expr:
    """``c < b``."""
    kind, dtype, limit = type(b), a.dtype, a.value
    if kind is Add and type(b.b) is IntImm:
        return rw.lt(rw.integer(dtype, limit - b.b.value), b.a)
    if kind is Sub:
        if type(b.a) is IntImm:
            return rw.lt(b.b, rw.integer(dtype, b.a.value - limit))
        if limit == 0:
            return rw.lt(b.b, b.a)
    if kind is Mul and type(b.b) is IntImm and b.b.value != 0:
        factor = b.b.value
        if factor > 0:
            return rw.lt(rw.integer(dtype, limit // factor), b.a)
        return rw.lt(b.a, rw.integer(dtype, -(limit // -factor)))
    if kind is FloorDiv and type(b.b) is IntImm and b.b.value > 0:
        return rw.lt(rw.integer(dtype, (limit + 1) * b.b.value - 1), b.a)
    if kind is Div and type(b.b) is IntImm and b.b.value > 0:
        if limit >= 0 or rw.bound(b.a)[0] >= 0:
            return rw.lt(rw.integer(dtype, (limit + 1) * b.b.value - 1), b.a)
        return rw.lt(rw.integer(dtype, limit * b.b.value), b.a)
    if kind is Select:
        return _select_test(rw, LT, a, b)
    return _less_extremum(rw, a, b, IntImm, kind)


def _vector(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    if type(a) is Broadcast and type(b) is Broadcast:
        return rw.broadcast(rw.eq(a.value, b.value) if kind is EQ else rw.lt(a.value, b.value), a.lanes)
    return rw.make(kind, a, b)


def le(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a <= b``."""
    if not a.dtype.is_integral:
        # Not the opposite of b < a, for NaN.
        return rw.fold(LE, a, b) if type(a) is FloatImm and type(b) is FloatImm else rw.make(LE, a, b)
    return rw.logical_not(rw.lt(b, a))


def gt(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a > b``."""
    return rw.lt(b, a)


def ge(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a >= b``."""
    return rw.le(b, a)


def ne(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified ``a != b``."""
    if not a.dtype.is_integral:
        return rw.fold(NE, a, b) if type(a) is FloatImm and type(b) is FloatImm else rw.make(NE, a, b)
    return rw.logical_not(rw.eq(a, b))
