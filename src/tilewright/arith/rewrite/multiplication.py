"""Rules for products: constants move to the right and out of nested products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith.pool import Expr, is_index
from tilewright.ir.expr import Add, Broadcast, FloatImm, IntImm, Max, Min, Mul, Ramp, Sub

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter


def mul(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified product of two simplified expressions."""
    kind_a, kind_b = type(a), type(b)
    if kind_a is IntImm:
        if kind_b is IntImm:
            return rw.integer(a.dtype, a.value * b.value)
        a, b, kind_a, kind_b = b, a, kind_b, kind_a
    dtype = a.dtype
    if kind_b is IntImm:
        if b.value == 0:
            return b
        if b.value == 1:
            return a
        return _mul_constant(rw, a, b) if is_index(dtype) else rw.make(Mul, a, b)
    if not is_index(dtype):
        if dtype.lanes > 1:
            return _mul_vectors(rw, a, b)
        if kind_a is FloatImm and kind_b is FloatImm:
            return rw.fold(Mul, a, b)
        return rw.make(Mul, a, b)
    if kind_a is Mul and type(a.b) is IntImm:
        return rw.mul(rw.mul(a.a, b), a.b)
    if kind_b is Mul and type(b.b) is IntImm:
        return rw.mul(rw.mul(a, b.a), b.b)
    if (kind_a is Min and kind_b is Max) or (kind_a is Max and kind_b is Min):
        if (a.a is b.a and a.b is b.b) or (a.a is b.b and a.b is b.a):
            return rw.mul(a.a, a.b)
    return rw.make(Mul, a, b)


def _mul_constant(rw: Rewriter, a: Expr, b: IntImm) -> Expr:
    """``a * c``, both of an index type."""
    kind, dtype = type(a), a.dtype
    if kind is Mul and type(a.b) is IntImm:
        return rw.mul(a.a, rw.integer(dtype, a.b.value * b.value))
    if kind is Add and type(a.b) is IntImm:
        return rw.add(rw.mul(a.a, b), rw.integer(dtype, a.b.value * b.value))
    if kind is Sub and b.value < 0:
        return rw.mul(rw.sub(a.b, a.a), rw.integer(dtype, -b.value))
    return rw.make(Mul, a, b)


def _mul_vectors(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    kind_a, kind_b = type(a), type(b)
    lanes = a.dtype.lanes
    if kind_a is Broadcast and kind_b is Broadcast:
        return rw.broadcast(rw.mul(a.value, b.value), lanes)
    if is_index(a.dtype.element):
        if kind_a is Ramp and kind_b is Broadcast:
            return rw.ramp(rw.mul(a.base, b.value), rw.mul(a.stride, b.value), lanes)
        if kind_a is Broadcast and kind_b is Ramp:
            return rw.ramp(rw.mul(b.base, a.value), rw.mul(b.stride, a.value), lanes)
    return rw.make(Mul, a, b)
