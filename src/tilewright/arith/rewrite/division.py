"""Rules for quotients and remainders, rounded down and truncated.

One set of rules serves both roundings: a truncated quotient obeys the floor rules where the dividend and the part that
stays under the division are known to be non-negative. Division by zero is undefined, so ``x // x`` is 1.

The dividend is split into addends ``coefficient * term``. Those that the divisor divides are moved out of the division.
If the rest is ``g * high + low``, with ``g`` a divisor of the divisor and ``0 <= low < g``, the low part does not
affect the quotient.

With a symbolic divisor, a dividend that is provably smaller than the divisor has the quotient zero: with ``x`` in
``range(0, n)`` and ``y`` in ``range(0, m)``, this holds for ``x // n``, ``(y % m) // m`` and ``(x * m + y) // (n *
m)``.
"""

from __future__ import annotations

from math import gcd, inf
from typing import TYPE_CHECKING

from tilewright.arith.const_int_bound import Bound
from tilewright.arith.pool import Expr, NodeClass, is_index
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
    Sub,
    Var,
)

if TYPE_CHECKING:
    from tilewright.arith.rewrite.simplifier import Rewriter

_MAX_TERMS = 16
"""Dividends of more addends are skipped: the rules look at all of them."""

Term = tuple[Expr, int]


def floordiv(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified quotient, rounded down."""
    return _quotient(rw, FloorDiv, a, b)


def truncdiv(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified quotient, rounded towards zero; of floats, the plain one."""
    if a.dtype.is_float:
        if type(a) is FloatImm and type(b) is FloatImm and b.value != 0:
            return rw.fold(Div, a, b)
        return rw.make(Div, a, b)
    return _quotient(rw, Div, a, b)


def floormod(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified remainder of ``floordiv``."""
    return _remainder(rw, FloorMod, a, b)


def truncmod(rw: Rewriter, a: Expr, b: Expr) -> Expr:
    """The simplified remainder of ``truncdiv``."""
    return _remainder(rw, Mod, a, b)


def fold_quotient(kind: NodeClass, a: int, b: int) -> int:
    """The quotient of two integers as the node class rounds it."""
    if kind is FloorDiv:
        return a // b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _quotient(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    dtype = a.dtype
    if type(b) is IntImm:
        if b.value == 1:
            return a
        if b.value == 0:
            return rw.make(kind, a, b)
        if type(a) is IntImm:
            return rw.integer(dtype, fold_quotient(kind, a.value, b.value))
    if type(a) is IntImm and a.value == 0:
        return a
    if dtype.lanes > 1:
        return _vector_quotient(rw, kind, a, b)
    bound_a = rw.bound(a)
    bound_b = rw.bound(b)
    if bound_a[0] >= 0 and bound_b[0] > bound_a[1]:
        return rw.integer(dtype, 0)
    if not is_index(dtype):
        return rw.make(kind, a, b)
    if a is b:
        return rw.integer(dtype, 1)
    if type(b) is IntImm:
        if b.value == -1:
            return rw.sub(rw.integer(dtype, 0), a)
        if b.value > 0:
            low, high = bound_a
            if -inf < low and high < inf:
                first = fold_quotient(kind, int(low), b.value)
                if first == fold_quotient(kind, int(high), b.value):
                    return rw.integer(dtype, first)
            return _quotient_by_constant(rw, kind, a, b)
        return rw.make(kind, a, b)
    return _quotient_by_symbol(rw, kind, a, b)


def _quotient_by_constant(rw: Rewriter, kind: NodeClass, a: Expr, b: IntImm) -> Expr:
    """``a / c`` for a positive constant."""
    kind_a, dtype, divisor = type(a), a.dtype, b.value
    if kind_a is kind and type(a.b) is IntImm and a.b.value > 0:
        return _quotient(rw, kind, a.a, rw.integer(dtype, a.b.value * divisor))
    if kind_a is Mul and type(a.b) is IntImm:
        factor = a.b.value
        if factor % divisor == 0:
            return rw.mul(a.a, rw.integer(dtype, factor // divisor))
        if factor > 0 and divisor % factor == 0:
            return _quotient(rw, kind, a.a, rw.integer(dtype, divisor // factor))
        return rw.make(kind, a, b)
    if kind_a is Add or kind_a is Sub:
        if kind_a is Sub and kind is FloorDiv and type(a.b) is FloorMod and a.b.a is a.a and a.b.b is b:
            return _quotient(rw, kind, a.a, b)
        found = _nested_quotient(rw, kind, a, divisor)
        if found is None:
            found = _split_quotient(rw, kind, a, divisor)
        if found is not None:
            return found
    elif kind_a is Min or kind_a is Max:
        # Division by a positive number keeps order.
        if any(
            type(side) is Mul and type(side.b) is IntImm and side.b.value % divisor == 0
            for side in (a.a, a.b)
        ):
            return rw.extremum(kind_a, _quotient(rw, kind, a.a, b), _quotient(rw, kind, a.b, b))
    return rw.make(kind, a, b)


def _nested_quotient(rw: Rewriter, kind: NodeClass, a: Expr, divisor: int) -> Expr | None:
    """``(x / c + d) / e = (x + c * d) / (c * e)``."""
    if type(a) is not Add or type(a.b) is not IntImm or type(a.a) is not kind:
        return None
    inner: Expr = a.a
    if type(inner.b) is not IntImm or inner.b.value <= 0:
        return None
    if kind is Div and (rw.bound(inner.a)[0] < 0 or a.b.value < 0):
        return None
    shifted = rw.add(inner.a, rw.integer(a.dtype, inner.b.value * a.b.value))
    return _quotient(rw, kind, shifted, rw.integer(a.dtype, inner.b.value * divisor))


def terms_of(expr: Expr) -> tuple[list[Term], int] | None:
    """The addends of a sum as ``(term, coefficient)``, in order, and the constant; None if there are too many."""
    terms: list[Term] = []
    total = 0
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        kind = type(node)
        if kind is Add:
            stack.append((node.b, sign))
            stack.append((node.a, sign))
        elif kind is Sub:
            stack.append((node.b, -sign))
            stack.append((node.a, sign))
        elif kind is IntImm:
            total += sign * node.value
        elif kind is Mul and type(node.b) is IntImm:
            if type(node.a) is Add or type(node.a) is Sub:
                stack.append((node.a, sign * node.b.value))
            else:
                terms.append((node.a, sign * node.b.value))
        else:
            terms.append((node, sign))
        if len(terms) + len(stack) > _MAX_TERMS:
            return None
    return terms, total


def sum_of(rw: Rewriter, terms: list[Term], total: int, dtype: Expr) -> Expr:
    """The simplified sum of terms and a constant; terms with negative coefficients come last."""
    result: Expr = None
    for term, factor in terms:
        if factor > 0:
            made = term if factor == 1 else rw.mul(term, rw.integer(dtype, factor))
            result = made if result is None else rw.add(result, made)
    if result is None:
        result = rw.integer(dtype, total if total > 0 else 0)
        total = min(total, 0)
    for term, factor in terms:
        if factor < 0:
            result = rw.sub(result, term if factor == -1 else rw.mul(term, rw.integer(dtype, -factor)))
    return rw.add(result, rw.integer(dtype, total)) if total else result


def _split_quotient(rw: Rewriter, kind: NodeClass, a: Expr, divisor: int) -> Expr | None:
    """The quotient of a sum, by the rule in the module's text; None if nothing leaves the division."""
    parts = terms_of(a)
    if parts is None:
        return None
    terms, total = parts
    dtype = a.dtype
    outside = [(term, factor // divisor) for term, factor in terms if factor % divisor == 0]
    inside = [(term, factor) for term, factor in terms if factor % divisor]
    # Only a whole multiple leaves by itself: x // 4 + 1 is no simpler than (x + 4) // 4 unless something else
    # left, too.
    carried = total // divisor if outside or total % divisor == 0 else 0
    rest = total - carried * divisor
    if kind is Div:
        if rw.bound(a)[0] < 0:
            return None
        remaining = sum_of(rw, inside, rest, dtype)
        if rw.bound(remaining)[0] < 0:
            carried, rest = 0, total
            remaining = sum_of(rw, inside, rest, dtype)
            if rw.bound(remaining)[0] < 0:
                return None
    if not outside and not carried:
        low_free = _drop_low(rw, inside, rest, divisor, dtype)
        if low_free is None:
            return None
        high, factor, _ = low_free
        return _quotient(rw, kind, high, rw.integer(dtype, divisor // factor))
    left = _quotient(rw, kind, sum_of(rw, inside, rest, dtype), rw.integer(dtype, divisor))
    if kind is Div and outside and terms[0][1] % divisor:
        return rw.add(left, sum_of(rw, outside, carried, dtype))
    return (
        rw.add(sum_of(rw, outside, carried, dtype), left)
        if outside
        else rw.add(left, rw.integer(dtype, carried))
    )


def _drop_low(
    rw: Rewriter, terms: list[Term], total: int, divisor: int, dtype: Expr
) -> tuple[Expr, int, Expr] | None:
    """``(high, g, low)`` with ``sum = g * high + low``, ``g`` divides ``divisor`` and ``0 <= low < g``, or None."""
    if not terms:
        return None
    for factor in sorted({abs(factor) for _, factor in terms if abs(factor) > 1}, reverse=True):
        if divisor % factor:
            continue
        low_terms = [term for term in terms if term[1] % factor]
        if not low_terms and total % factor == 0:
            low = rw.integer(dtype, 0)
            carried = total // factor
        else:
            carried = total // factor
            low = sum_of(rw, low_terms, total - carried * factor, dtype)
            bound = rw.bound(low)
            if not (bound[0] >= 0 and bound[1] < factor):
                continue
        high = [(term, coefficient // factor) for term, coefficient in terms if coefficient % factor == 0]
        return sum_of(rw, high, carried, dtype), factor, low
    return None


def _without_factor(rw: Rewriter, term: Expr, b: Expr) -> Expr | None:
    """``term / b`` where ``b`` is a factor of ``term`` in plain sight."""
    if term is b:
        return rw.integer(b.dtype, 1)
    if type(term) is Mul:
        if term.b is b:
            return term.a
        if term.a is b:
            return term.b
        inner = _without_factor(rw, term.a, b) if type(term.b) is IntImm else None
        if inner is not None:
            return rw.mul(inner, term.b)
    return None


def _end_of(rw: Rewriter, a: Expr, depth: int = 4) -> Expr | None:
    """A symbol that an expression without negative values is known to stay below; None where none is in plain
    sight."""
    kind = type(a)
    if kind is Var:
        known = rw.ranges.get(a)
        if (
            known is None
            or type(known.extent) is IntImm
            or not (a.dtype is known.min.dtype is known.extent.dtype)
        ):
            return None
        return rw.add(rw.visit(known.min), rw.visit(known.extent))
    if not depth:
        return None
    if kind is FloorMod:
        return a.b if type(a.b) is not IntImm and rw.bound(a.b)[0] >= 0 else None
    if kind is FloorDiv:
        # Values below p * m, of which there are any only if m is positive, have quotients by m below p.
        end = _end_of(rw, a.a, depth - 1) if rw.bound(a.b)[0] >= 0 and rw.bound(a.a)[0] >= 0 else None
        return None if end is None else _without_factor(rw, end, a.b)
    if kind is Add:
        for high, low in ((a.a, a.b), (a.b, a.a)):
            if type(high) is Mul and rw.bound(low)[0] >= 0:
                end = _end_of(rw, low, depth - 1)
                number = None if end is None else _without_factor(rw, high, end)
                if end is not None and number is not None:
                    limit = _end_of(rw, number, depth - 1) if rw.bound(number)[0] >= 0 else None
                    return None if limit is None else rw.mul(limit, end)
    return None


def _stays_below(rw: Rewriter, a: Expr, bound_a: Bound, b: Expr) -> bool:
    """True if ``0 <= a < b`` is known of a symbol ``b``."""
    if bound_a[0] < 0 or (not rw.ranges and type(a) is not FloorMod):
        return False
    end = _end_of(rw, a)
    if end is None or end is b:
        return end is b
    distance = rw.sub(end, b)
    return type(distance) is IntImm and distance.value <= 0


def _quotient_by_symbol(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    """``(x * n + y) / n = x + y / n``."""
    whole = _without_factor(rw, a, b)
    if whole is not None:
        return whole
    if _stays_below(rw, a, rw.bound(a), b):
        return rw.integer(a.dtype, 0)
    found = _split_by_symbol(rw, kind, a, b) if type(a) is Add else None
    return rw.make(kind, a, b) if found is None else found


def _split_by_symbol(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr | None:
    """The addends that the symbol divides leave the division; None if there is none."""
    parts = terms_of(a)
    if parts is None:
        return None
    terms, total = parts
    divided = [(_without_factor(rw, term, b), factor) for term, factor in terms]
    outside = [(whole, factor) for whole, factor in divided if whole is not None]
    if not outside:
        return None
    inside = [one for one, (whole, _) in zip(terms, divided, strict=True) if whole is None]
    rest = sum_of(rw, inside, total, a.dtype)
    if kind is Div and (rw.bound(a)[0] < 0 or rw.bound(rest)[0] < 0 or rw.bound(b)[0] < 0):
        return None
    left, whole = _quotient(rw, kind, rest, b), sum_of(rw, outside, 0, a.dtype)
    return rw.add(whole, left) if divided[0][0] is not None else rw.add(left, whole)


def _remainder(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    dtype = a.dtype
    quotient_kind = FloorDiv if kind is FloorMod else Div
    if type(b) is IntImm:
        if b.value == 0:
            return rw.make(kind, a, b)
        if b.value == 1:
            return rw.integer(dtype, 0)
        if type(a) is IntImm:
            return rw.integer(dtype, a.value - b.value * fold_quotient(quotient_kind, a.value, b.value))
    if type(a) is IntImm and a.value == 0:
        return a
    if dtype.lanes > 1:
        return _vector_remainder(rw, kind, a, b)
    bound_a = rw.bound(a)
    if bound_a[0] >= 0 and rw.bound(b)[0] > bound_a[1]:
        return a
    if not is_index(dtype):
        return rw.make(kind, a, b)
    if a is b:
        return rw.integer(dtype, 0)
    if type(b) is IntImm:
        if b.value == -1:
            return rw.integer(dtype, 0)
        if b.value < 0 and kind is Mod:
            # The sign of the divisor does not matter to what is left of a truncated quotient.
            b = rw.integer(dtype, -b.value)
        return _remainder_by_constant(rw, kind, a, b) if b.value > 0 else rw.make(kind, a, b)
    if _without_factor(rw, a, b) is not None:
        return rw.integer(dtype, 0)
    if _stays_below(rw, a, bound_a, b):
        return a
    if kind is FloorMod and type(a) is Add:
        for x, y in ((a.a, a.b), (a.b, a.a)):
            if _without_factor(rw, x, b) is not None:
                return _remainder(rw, kind, y, b)
    return rw.make(kind, a, b)


def _remainder_by_constant(rw: Rewriter, kind: NodeClass, a: Expr, b: IntImm) -> Expr:
    """``a % c`` for a positive constant."""
    kind_a, dtype, divisor = type(a), a.dtype, b.value
    low, high = rw.bound(a)
    if kind is Mod and low < 0:
        coefficient, base = rw.modular(a)
        if coefficient % divisor == 0 and base % divisor == 0:
            return rw.integer(dtype, 0)
        return rw.make(kind, a, b)
    if -inf < low and high < inf and low // divisor == high // divisor:
        return rw.add(a, rw.integer(dtype, -int(low // divisor) * divisor))
    if kind_a is kind and type(a.b) is IntImm and a.b.value > 0 and a.b.value % divisor == 0:
        return _remainder(rw, kind, a.a, b)
    coefficient, base = rw.modular(a)
    if coefficient % divisor == 0:
        return rw.integer(dtype, base % divisor)
    if kind_a is Add or kind_a is Sub or kind_a is Mul:
        parts = terms_of(a)
        if parts is not None:
            found = _split_remainder(rw, kind, a, parts[0], parts[1], divisor)
            if found is not None:
                return found
    return rw.make(kind, a, b)


def _split_remainder(
    rw: Rewriter, kind: NodeClass, a: Expr, terms: list[Term], total: int, divisor: int
) -> Expr | None:
    """The remainder of a sum; None if no addend can be reduced."""
    dtype = a.dtype
    reduced = [
        (term, factor % divisor if factor > 0 or kind is FloorMod or factor % divisor == 0 else factor)
        for term, factor in terms
    ]
    reduced = [
        (term, new if abs(new) <= abs(old) else old)
        for (term, new), (_, old) in zip(reduced, terms, strict=True)
        if new
    ]
    rest = total % divisor
    if kind is Mod and rw.bound(sum_of(rw, reduced, rest, dtype))[0] < 0:
        return None
    if reduced != terms or rest != total:
        return _remainder(rw, kind, sum_of(rw, reduced, rest, dtype), rw.integer(dtype, divisor))
    low_free = _drop_low(rw, reduced, rest, divisor, dtype)
    if low_free is None:
        return None
    high, factor, low = low_free
    remainder = _remainder(rw, kind, high, rw.integer(dtype, divisor // factor))
    return rw.add(rw.mul(remainder, rw.integer(dtype, factor)), low)


def _constant_ramp(a: Expr, b: Expr) -> tuple[int, int] | None:
    """Stride and divisor of a ramp of constant stride divided by a broadcast positive constant of an index type."""
    if type(a) is Ramp and type(b) is Broadcast and is_index(a.base.dtype):
        if type(a.stride) is IntImm and type(b.value) is IntImm and b.value.value > 0:
            return a.stride.value, b.value.value
    return None


def _vector_quotient(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    lanes = a.dtype.lanes
    if type(a) is Broadcast and type(b) is Broadcast:
        return rw.broadcast(_quotient(rw, kind, a.value, b.value), lanes)
    found = _constant_ramp(a, b)
    # A truncated quotient is the floor only where no lane is negative.
    if found is not None and (kind is FloorDiv or rw.bound(a)[0] >= 0):
        stride, divisor = found
        if stride % divisor == 0:
            return rw.ramp(
                _quotient(rw, kind, a.base, b.value), rw.integer(a.stride.dtype, stride // divisor), lanes
            )
        coefficient, base = rw.modular(a.base)
        # Whatever multiple of the common divisor is added, the lanes stay within one of its intervals.
        step = gcd(coefficient, divisor)
        if base // step == (base + (lanes - 1) * stride) // step:
            if step > 1:
                return rw.broadcast(_quotient(rw, kind, a.base, b.value), lanes)
    return rw.make(kind, a, b)


def _vector_remainder(rw: Rewriter, kind: NodeClass, a: Expr, b: Expr) -> Expr:
    lanes = a.dtype.lanes
    if type(a) is Broadcast and type(b) is Broadcast:
        return rw.broadcast(_remainder(rw, kind, a.value, b.value), lanes)
    found = _constant_ramp(a, b)
    if found is not None and (kind is FloorMod or rw.bound(a)[0] >= 0):
        stride, divisor = found
        if stride % divisor == 0:
            return rw.broadcast(_remainder(rw, kind, a.base, b.value), lanes)
        coefficient, base = rw.modular(a.base)
        if coefficient % divisor == 0:
            first = base % divisor
            start = rw.integer(a.base.dtype, first)
            if first // divisor == (first + (lanes - 1) * stride) // divisor:
                return rw.ramp(start, a.stride, lanes)
            if a.base is not start:
                return rw.make(kind, rw.ramp(start, a.stride, lanes), b)
    return rw.make(kind, a, b)
