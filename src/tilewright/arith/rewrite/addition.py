"""Rules for sums and differences.

``add`` and ``sub`` take simplified, interned operands and return a simplified result. Constants move to the right (``x
+ 3``, never ``3 + x`` or ``x - 3``), so that they can be combined. Rules that reorder apply only to index types; for
other integers only constants are folded, with the type's wrap-around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith.pool import Expr, NodeClass, is_index
from tilewright.arith.rewrite.minmax import shared_operand
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Ramp,
    Select,
    Sub,
)
from tilewright.support.dtype import DataType

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter


def add(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified sum of two simplified expressions."""
    kind_a, kind_b = type(a), type(b)
    if kind_a is IntImm:
        if kind_b is IntImm:
            return rw.integer(a.dtype, a.value + b.value)
        a, b, kind_a, kind_b = b, a, kind_b, kind_a
    dtype = a.dtype
    if kind_b is IntImm:
        if b.value == 0:
            return a
        return _add_constant(rw, a, b) if is_index(dtype) else _fold_wrapping(rw, a, b)
    if not is_index(dtype):
        if dtype.lanes > 1:
            return _add_vectors(rw, a, b)
        if kind_a is FloatImm and kind_b is FloatImm:
            return rw.fold(Add, a, b)
        return rw.make(Add, a, b)
    if a is b:
        return rw.mul(a, rw.integer(dtype, 2))
    if kind_a is Sub:
        if a.b is b:
            return a.a
        if kind_b is Sub:
            if a.b is b.a:
                return rw.sub(a.a, b.b)
            if a.a is b.b:
                return rw.sub(b.a, a.b)
        if type(a.a) is IntImm:
            return rw.add(rw.sub(b, a.b), a.a)
    if kind_b is Sub:
        if b.b is a:
            return b.a
        if type(b.a) is IntImm:
            return rw.add(rw.sub(a, b.b), b.a)
    if kind_a is Add and type(a.b) is IntImm:
        return rw.add(rw.add(a.a, b), a.b)
    if kind_b is Add and type(b.b) is IntImm:
        return rw.add(rw.add(a, b.a), b.b)
    if kind_a is Min or kind_a is Max:
        found = _add_extremum(rw, a, b)
        if found is not None:
            return found
    elif kind_b is Min or kind_b is Max:
        return rw.add(b, a)
    if kind_a is Mul or kind_b is Mul:
        found = _recombine(a, b)
        if found is None:
            found = _recombine(b, a)
        if found is not None:
            return found
        factors = common_factor(a, b)
        if factors is not None:
            common, rest_a, rest_b = factors
            return rw.mul(common, rw.add(_factor(rw, rest_a, dtype), _factor(rw, rest_b, dtype)))
    if kind_a is Select and kind_b is Select and a.condition is b.condition:
        return rw.select(
            a.condition, rw.add(a.true_value, b.true_value), rw.add(a.false_value, b.false_value)
        )
    return rw.make(Add, a, b)


def _fold_wrapping(rw: Rewriter, a: Expr, b: IntImm) -> Expr:
    """``(x + c) + d`` in a type that wraps: the sum of the constants wraps alike."""
    if type(a) is Add and type(a.b) is IntImm:
        return rw.add(a.a, rw.integer(a.dtype, a.b.value + b.value))
    return rw.make(Add, a, b)


def _add_constant(rw: Rewriter, a: Expr, b: IntImm) -> Expr:
    """``a + c``, both of an index type."""
    kind, dtype = type(a), a.dtype
    if kind is Add and type(a.b) is IntImm:
        return rw.add(a.a, rw.integer(dtype, a.b.value + b.value))
    if kind is Sub and type(a.a) is IntImm:
        return rw.sub(rw.integer(dtype, a.a.value + b.value), a.b)
    if kind is Min or kind is Max:
        for x, y in ((a.a, a.b), (a.b, a.a)):
            if type(y) is Add and type(y.b) is IntImm and y.b.value == -b.value:
                moved = rw.add(x, b)
                return rw.extremum(kind, moved, y.a) if x is a.a else rw.extremum(kind, y.a, moved)
    return rw.make(Add, a, b)


def _add_extremum(rw: Rewriter, a: Expr, b: Expr) -> Expr | None:
    """``min(x, y) + b`` where ``b`` cancels in an operand, or is the other extremum of the same two."""
    kind = type(a)
    if type(b) is (Max if kind is Min else Min):
        if (a.a is b.a and a.b is b.b) or (a.a is b.b and a.b is b.a):
            return rw.add(a.a, a.b)
    left = _without_addend(rw, a.b, b)
    if left is not None:
        return rw.extremum(kind, rw.add(a.a, b), left)
    left = _without_addend(rw, a.a, b)
    if left is not None:
        return rw.extremum(kind, left, rw.add(a.b, b))
    return None


def _without_addend(rw: Rewriter, term: Expr, b: Expr) -> Expr | None:
    """``term + b`` where ``term`` contains ``-b`` in plain sight."""
    kind = type(term)
    if kind is Sub and term.b is b:
        return term.a
    if kind is Add and type(b) is Mul and type(b.b) is IntImm:
        if _is_negative_of(term.b, b):
            return term.a
        if _is_negative_of(term.a, b):
            return term.b
    if _is_negative_of(term, b):
        return rw.integer(b.dtype, 0)
    return None


def _is_negative_of(a: Expr, b: Expr) -> bool:
    """True for ``x * c`` and ``x * -c``."""
    return (
        type(a) is Mul
        and type(b) is Mul
        and a.a is b.a
        and type(a.b) is IntImm
        and type(b.b) is IntImm
        and a.b.value == -b.b.value
    )


def common_factor(a: Expr, b: Expr) -> tuple[Expr, Expr | None, Expr | None] | None:
    """``(x, y, z)`` such that ``a = x * y`` and ``b = x * z``, None for a factor of one; None if there is no ``x``."""
    if type(a) is not Mul:
        if b.a is a:
            return a, None, b.b
        return (a, None, b.a) if b.b is a else None
    if type(b) is not Mul:
        if a.a is b:
            return b, a.b, None
        return (b, a.a, None) if a.b is b else None
    return shared_operand(a, b)


def _factor(rw: Rewriter, factor: Expr | None, dtype: DataType) -> Expr:
    return rw.integer(dtype, 1) if factor is None else factor


def _recombine(a: Expr, b: Expr) -> Expr | None:
    """``(x // y) * y + x % y = x``, floor and truncated; ``x % y`` may be written of what differs from ``x`` by a
    multiple of ``y``."""
    if type(a) is Mul:
        quotient, divisor, kind = a.a, a.b, type(b)
        wanted = FloorDiv if kind is FloorMod else Div if kind is Mod else None
        if wanted is not None and b.b is divisor and type(quotient) is wanted and quotient.b is divisor:
            if quotient.a is b.a:
                return b.a
            if (
                kind is FloorMod
                and type(divisor) is IntImm
                and _differ_by_multiple(quotient.a, b.a, divisor.value)
            ):
                return quotient.a
    return None


def _differ_by_multiple(a: Expr, b: Expr, number: int) -> bool:
    """True for ``x + c`` and ``x + d`` with ``c - d`` a multiple of the number."""

    def parts(expr: Expr) -> tuple[Expr, int]:
        if type(expr) is Add and type(expr.b) is IntImm:
            return expr.a, expr.b.value
        return expr, 0

    (x, first), (y, second) = parts(a), parts(b)
    return x is y and (first - second) % number == 0


def _add_vectors(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    kind_a, kind_b = type(a), type(b)
    lanes = a.dtype.lanes
    if kind_a is Broadcast and kind_b is Broadcast:
        return rw.broadcast(rw.add(a.value, b.value), lanes)
    if is_index(a.dtype.element):
        if kind_a is Ramp and kind_b is Ramp:
            return rw.ramp(rw.add(a.base, b.base), rw.add(a.stride, b.stride), lanes)
        if kind_a is Ramp and kind_b is Broadcast:
            return rw.ramp(rw.add(a.base, b.value), a.stride, lanes)
        if kind_a is Broadcast and kind_b is Ramp:
            return rw.ramp(rw.add(a.value, b.base), b.stride, lanes)
    return rw.make(Add, a, b)


def sub(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified difference of two simplified expressions."""
    kind_a, kind_b = type(a), type(b)
    dtype = a.dtype
    if kind_b is IntImm:
        if kind_a is IntImm:
            return rw.integer(dtype, a.value - b.value)
        if b.value == 0:
            return a
        if is_index(dtype):
            return rw.add(a, rw.integer(dtype, -b.value))
        return rw.make(Sub, a, b)
    if not is_index(dtype):
        if dtype.lanes > 1:
            return _sub_vectors(rw, a, b)
        if a is b and dtype.is_integral:
            return rw.integer(dtype, 0)
        if kind_a is FloatImm and kind_b is FloatImm:
            return rw.fold(Sub, a, b)
        return rw.make(Sub, a, b)
    if a is b:
        return rw.integer(dtype, 0)
    found = _cancel(rw, a, b, kind_a, kind_b)
    if found is not None:
        return found
    if kind_a is Add and type(a.b) is IntImm:
        return rw.add(rw.sub(a.a, b), a.b)
    if kind_b is Add and type(b.b) is IntImm:
        return rw.add(rw.sub(a, b.a), rw.integer(dtype, -b.b.value))
    if kind_b is Sub:
        return rw.sub(rw.add(a, b.b), b.a)
    if kind_a is Sub and type(a.a) is IntImm:
        return rw.sub(a.a, rw.add(a.b, b))
    if kind_a is Min or kind_a is Max or kind_b is Min or kind_b is Max:
        found = _sub_extremum(rw, a, b, kind_a, kind_b)
        if found is not None:
            return found
    found = _sub_quotient(rw, a, b, kind_a, kind_b)
    if found is not None:
        return found
    if kind_a is Mul or kind_b is Mul:
        factors = common_factor(a, b)
        if factors is not None:
            common, rest_a, rest_b = factors
            return rw.mul(common, rw.sub(_factor(rw, rest_a, dtype), _factor(rw, rest_b, dtype)))
        if kind_b is Mul and type(b.b) is IntImm and b.b.value < 0:
            return rw.add(a, rw.mul(b.a, rw.integer(dtype, -b.b.value)))
    if kind_a is Select:
        condition = a.condition
        if kind_b is Select and condition is b.condition:
            return rw.select(
                condition, rw.sub(a.true_value, b.true_value), rw.sub(a.false_value, b.false_value)
            )
        if a.false_value is b:
            return rw.select(condition, rw.sub(a.true_value, b), rw.integer(dtype, 0))
        if a.true_value is b:
            return rw.select(condition, rw.integer(dtype, 0), rw.sub(a.false_value, b))
    return rw.make(Sub, a, b)


def _cancel(rw: Rewriter, a: Expr, b: Expr, kind_a: NodeClass, kind_b: NodeClass) -> Expr | None:
    """Differences in which an addend is on both sides."""
    if kind_a is Add:
        if a.a is b:
            return a.b
        if a.b is b:
            return a.a
    elif kind_a is Sub and a.a is b:
        return rw.sub(rw.integer(a.dtype, 0), a.b)
    if kind_b is Add:
        if b.a is a:
            return rw.sub(rw.integer(a.dtype, 0), b.b)
        if b.b is a:
            return rw.sub(rw.integer(a.dtype, 0), b.a)
        if kind_a is Add:
            if a.a is b.a:
                return rw.sub(a.b, b.b)
            if a.b is b.a:
                return rw.sub(a.a, b.b)
            if a.a is b.b:
                return rw.sub(a.b, b.a)
            if a.b is b.b:
                return rw.sub(a.a, b.a)
    elif kind_b is Sub:
        if b.a is a:
            return b.b
        if kind_a is Sub:
            if a.a is b.a:
                return rw.sub(b.b, a.b)
            if a.b is b.b:
                return rw.sub(a.a, b.a)
    return None


def _sub_extremum(rw: Rewriter, a: Expr, b: Expr, kind_a: NodeClass, kind_b: NodeClass) -> Expr | None:
    """Differences with a minimum or maximum in which an operand cancels."""
    if kind_a is kind_b:
        if a.a is b.b and a.b is b.a:
            return rw.integer(a.dtype, 0)
        # Extrema of extrema are skipped: each level would make four queries of the next.
        if not any(type(side) in (Min, Max) for side in (a.a, a.b, b.a, b.b)):
            for x, y in ((b.a, b.b), (b.b, b.a)):
                difference = rw.sub(a.a, x)
                if difference is rw.sub(a.b, y):
                    return difference
    if kind_a is Min or kind_a is Max:
        for x, y in ((a.a, a.b), (a.b, a.a)):
            rest = _without_term(rw, x, b)
            if rest is not None:
                other = rw.sub(y, b)
                return rw.extremum(kind_a, rest, other) if x is a.a else rw.extremum(kind_a, other, rest)
    # A constant stays outside: min(c - x, d) is put as c - max(x, c - d).
    if (kind_b is Min or kind_b is Max) and kind_a is not IntImm:
        opposite = Max if kind_b is Min else Min
        zero = rw.integer(a.dtype, 0)
        for x, y in ((b.a, b.b), (b.b, b.a)):
            rest = _without_term(rw, x, a)
            if rest is not None:
                negative, other = rw.sub(zero, rest), rw.sub(a, y)
                if x is b.a:
                    return rw.extremum(opposite, negative, other)
                return rw.extremum(opposite, other, negative)
    return None


def _without_term(rw: Rewriter, x: Expr, b: Expr) -> Expr | None:
    """``x - b`` where ``b`` is an addend of ``x`` in plain sight."""
    if x is b:
        return rw.integer(b.dtype, 0)
    if type(x) is Add:
        if x.a is b:
            return x.b
        if x.b is b:
            return x.a
    return None


def _quotient_parts(expr: Expr, kind: NodeClass) -> tuple[Expr, int, int, int] | None:
    """``(x, c, d, s)`` of ``((x + c) // d) * s`` with constants and ``d > 0``."""
    scale = 1
    quotient: Expr = expr
    if type(expr) is Mul and type(expr.b) is IntImm:
        quotient, scale = expr.a, expr.b.value
    if type(quotient) is not kind or type(quotient.b) is not IntImm or quotient.b.value <= 0:
        return None
    offset = 0
    inner: Expr = quotient.a
    if type(inner) is Add and type(inner.b) is IntImm:
        inner, offset = inner.a, inner.b.value
    return inner, offset, quotient.b.value, scale


def _sub_quotient(rw: Rewriter, a: Expr, b: Expr, kind_a: NodeClass, kind_b: NodeClass) -> Expr | None:
    """``x - (x // c) * c = x % c`` and its kin; the difference of two neighbouring quotients."""
    if _is_scaled_quotient(b):
        found = _less_quotient(rw, a, b)
        if found is not None:
            return found
        if kind_a is Add:
            for x, y in ((a.a, a.b), (a.b, a.a)):
                found = _less_quotient(rw, x, b)
                if found is not None:
                    return rw.add(found, y)
        if kind_a is Sub:
            found = _less_quotient(rw, a.a, b)
            if found is not None:
                return rw.sub(found, a.b)
    if _is_scaled_quotient(a):
        found = _quotient_less(rw, a, b)
        if found is not None:
            return found
        if kind_b is Add:
            for x, y in ((b.a, b.b), (b.b, b.a)):
                found = _quotient_less(rw, a, x)
                if found is not None:
                    return rw.sub(found, y)
    if kind_a is Add:
        for x, y in ((a.a, a.b), (a.b, a.a)):
            found = _quotient_less(rw, x, b) if _is_scaled_quotient(x) else None
            if found is not None:
                return rw.add(found, y)
    if kind_a is kind_b and kind_a in (FloorDiv, Div):
        left, right = _quotient_parts(a, kind_a), _quotient_parts(b, kind_a)
        if left is not None and right is not None and left[0] is right[0] and left[2] == right[2]:
            return _between_quotients(rw, kind_a, right, left[1], a.b)
    return None


def _is_scaled_quotient(expr: Expr) -> bool:
    """True for ``(x / c) * d`` with a constant ``d``."""
    return type(expr) is Mul and type(expr.b) is IntImm and type(expr.a) in (FloorDiv, Div)


def _less_quotient(rw: Rewriter, x: Expr, quotient: Expr) -> Expr | None:
    """``x * s - ((x + z) / c) * (c * s)`` as a remainder, or None."""
    found = _remainder(rw, x, quotient)
    if found is None:
        return None
    remainder, rest, factor = found
    return rw.mul(rw.sub(remainder, rest), rw.integer(x.dtype, factor))


def _quotient_less(rw: Rewriter, quotient: Expr, x: Expr) -> Expr | None:
    """``((x + z) / c) * (c * s) - x * s`` as a remainder, or None."""
    found = _remainder(rw, x, quotient)
    if found is None:
        return None
    remainder, rest, factor = found
    if type(rest) is IntImm and rest.value == 0 and factor != 1:
        return rw.mul(remainder, rw.integer(x.dtype, -factor))
    return rw.mul(rw.sub(rest, remainder), rw.integer(x.dtype, factor))


def _between_quotients(
    rw: Rewriter, kind: NodeClass, right: tuple[Expr, int, int, int], first: int, divisor: Expr
) -> Expr | None:
    """``(x + c) / d - (x + e) / d = ((x + e) % d + (c - e)) / d``, of truncated ones where none is negative."""
    x, offset, number, _ = right
    if kind is Div:
        if first < offset or rw.bound(x)[0] + offset < 0:
            return None
        low = rw.truncmod(rw.add(x, rw.integer(x.dtype, offset)), divisor)
        return rw.truncdiv(rw.add(low, rw.integer(x.dtype, first - offset)), divisor)
    low = rw.floormod(rw.add(x, rw.integer(x.dtype, offset % number)), divisor)
    return rw.floordiv(rw.add(low, rw.integer(x.dtype, first - offset)), divisor)


def _remainder(rw: Rewriter, a: Expr, b: Expr) -> tuple[Expr, Expr, int] | None:
    """``((x + z) % c, z, s)`` of ``x * s - ((x + z) / c) * (c * s)``, which is ``((x + z) % c - z) * s``."""
    quotient, scale = b.a, b.b.value
    if type(quotient.b) is not IntImm:
        return None
    readings = [(a, 1)]
    if type(a) is Mul and type(a.b) is IntImm:
        readings.insert(0, (a.a, a.b.value))
    for inner, factor in readings:
        rest = _rest_of_sum(rw, quotient.a, inner) if scale == factor * quotient.b.value else None
        if rest is not None:
            remainder = rw.floormod if type(quotient) is FloorDiv else rw.truncmod
            return remainder(quotient.a, quotient.b), rest, factor
    return None


def _rest_of_sum(rw: Rewriter, total: Expr, x: Expr) -> Expr | None:
    """``total - x`` where ``x`` is the sum itself or an addend of it in plain sight."""
    if type(total) is Sub and total.a is x:
        return rw.sub(rw.integer(x.dtype, 0), total.b)
    return _without_term(rw, total, x)


def _sub_vectors(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    kind_a, kind_b = type(a), type(b)
    lanes = a.dtype.lanes
    if kind_a is Broadcast and kind_b is Broadcast:
        return rw.broadcast(rw.sub(a.value, b.value), lanes)
    if is_index(a.dtype.element):
        if kind_a is Ramp and kind_b is Ramp:
            return rw.ramp(rw.sub(a.base, b.base), rw.sub(a.stride, b.stride), lanes)
        if kind_a is Ramp and kind_b is Broadcast:
            return rw.ramp(rw.sub(a.base, b.value), a.stride, lanes)
        if kind_a is Broadcast and kind_b is Ramp:
            return rw.ramp(rw.sub(a.value, b.base), rw.sub(rw.integer(b.stride.dtype, 0), b.stride), lanes)
    return rw.make(Sub, a, b)
