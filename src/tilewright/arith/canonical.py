"""The canonical simplifier: integer expressions as linear forms ``sum of coefficient * term + base``.

A term is an opaque expression ``x``, or a split of one, ``(x % upper) // lower``, which is what loop
splitting makes. Splits of one expression that fit together join again: ``(x // 4) * 4 + x % 4`` is ``x``.
``upper`` is a multiple of ``lower``, or None for no upper end. A split is by floor, or by truncation of an
``x`` that is known not to be negative.

Everything that is not a sum, product, quotient or remainder of an index type has its operands made canonical,
and is put together by the rules of the rewriting simplifier.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from tilewright.arith.pool import FALSE, TRUE, Expr, NodeClass, Pool, is_index
from tilewright.arith.rewrite.comparison import sides
from tilewright.arith.rewrite.simplifier import BINARY_RULES, Rewriter
from tilewright.arith.splits import Terms, join_splits
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    Broadcast,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mod,
    Mul,
    Not,
    Ramp,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tilewright.support.dtype import DataType

Form = tuple[Terms, int]
"""Terms and base. A form that was handed out is not changed."""

_FLATTEN = 256
"""How many addends of nested sums are gathered at once, and how many terms a form may bring into another sum.

Beyond it, a sum within a sum is one opaque term, which keeps the work linear in the size of a graph of sums."""

_ARITHMETIC = frozenset((Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod))


def _is_odd_part(terms: Terms, base: int, divisor: int) -> bool:
    """True for a multiple of one term that divides the divisor. Truncated division of it, and the remainder, change
    their sign with it, so that the rules for splits hold whatever its sign."""
    return (
        base == 0
        and len(terms) == 1
        and all(factor > 0 and divisor % factor == 0 for factor in terms.values())
    )


class Canonical:
    """Makes expressions canonical; ``memo`` and ``forms`` belong to the present scope."""

    __slots__ = ("forms", "memo", "pool", "rewriter")

    def __init__(self, pool: Pool, rewriter: Rewriter) -> None:
        self.pool = pool
        self.rewriter = rewriter
        self.memo: dict[Expr, Expr] = {}
        self.forms: dict[Expr, Form] = {}

    def visit(self, node: Expr) -> Expr:
        """The canonical, interned form of any expression, as an expression."""
        found = self.memo.get(node)
        if found is not None:
            return found
        kind = type(node)
        if kind in _ARITHMETIC and is_index(node.dtype):
            made = self.express(self.form(node), node.dtype)
        else:
            handler = _HANDLERS.get(kind)
            made = self._other(node) if handler is None else handler(self, node)
        self.memo[node] = made
        self.memo[made] = made
        return made

    # Linear forms.

    def form(self, node: Expr) -> Form:
        """The linear form of an expression of an index type."""
        found = self.forms.get(node)
        if found is not None:
            return found
        kind = type(node)
        if kind is Add or kind is Sub:
            made = self._sum(node)
        elif kind is IntImm:
            return {}, node.value
        elif kind is Mul:
            made = self._product(node)
        elif kind is FloorDiv or kind is Div:
            made = self._quotient(node, kind)
        elif kind is FloorMod or kind is Mod:
            made = self._remainder(node, FloorDiv if kind is FloorMod else Div)
        else:
            made = self.atom(self.visit(node))
        self.forms[node] = made
        return made

    def atom(self, expr: Expr) -> Form:
        """The form of a canonical expression that need not be a sum."""
        kind = type(expr)
        if kind is IntImm:
            return {}, expr.value
        if kind in _ARITHMETIC:
            found = self.forms.get(expr)
            if found is None:
                found = self.form(expr)
            return found
        return {expr: 1}, 0

    def _sum(self, node: Expr) -> Form:
        forms = self.forms
        terms: Terms = {}
        base = 0
        stack = [(node, 1)]
        room = _FLATTEN
        while stack:
            cursor, sign = stack.pop()
            kind = type(cursor)
            while (kind is Add or kind is Sub) and (cursor is node or (room > 0 and cursor not in forms)):
                stack.append((cursor.b, sign if kind is Add else -sign))
                room -= 1
                if type(cursor.b) is IntImm or type(cursor.b) is Var:
                    room += 1
                cursor = cursor.a
                kind = type(cursor)
            if kind is IntImm:
                base += sign * cursor.value
                continue
            if kind is Var:
                cursor_terms, cursor_base = forms.get(cursor) or self.form(cursor)
            else:
                cursor_terms, cursor_base = self.form(cursor)
            if len(cursor_terms) > _FLATTEN:
                cursor_terms, cursor_base = {self.express((cursor_terms, cursor_base), cursor.dtype): 1}, 0
            base += sign * cursor_base
            for key, factor in cursor_terms.items():
                terms[key] = terms.get(key, 0) + sign * factor
        return self.joined(terms, base)

    def joined(self, terms: Terms, base: int) -> Form:
        """The form without zeros, and with splits of one expression joined."""
        splits = 0
        for key, factor in terms.items():
            if factor == 0:
                return self.joined({key: factor for key, factor in terms.items() if factor}, base)
            if type(key) is tuple:
                splits += 1
        if splits == 0 or len(terms) == 1:
            return terms, base
        joined = join_splits(self._aligned(terms) if splits > 1 else terms)
        if len(joined) == len(terms):
            return joined, base
        # What two parts were joined to may fit a third, or be a sum that has terms in common with others.
        return self.joined(*self._spread(joined, base, terms))

    def _spread(self, terms: Terms, base: int, before: Terms) -> Form:
        """The form with every expression that was not among the terms ``before`` as the sum that it is."""
        result: Terms = {}
        for key, factor in terms.items():
            parts: Form = ({key: 1}, 0)
            if type(key) is not tuple and key not in before:
                whole = self.form(key)
                if len(whole[0]) <= _FLATTEN:
                    parts = whole
            base += parts[1] * factor
            for part, scale in parts[0].items():
                result[part] = result.get(part, 0) + scale * factor
        return result, base

    def _aligned(self, terms: Terms) -> Terms:
        """The terms with each remainder ``y % c`` beside a quotient ``x // c`` written as ``x % c``, where ``x``
        and ``y`` differ by a multiple of ``c``: the multiples were taken out of the one and not of the other."""
        quotients = [key for key in terms if type(key) is tuple and key[3] is FloorDiv and key[1] > 1]
        changed: dict[Any, Any] = {}
        for key, factor in terms.items():
            if type(key) is tuple and key[3] is FloorDiv and key[1] == 1 and key[2] is not None:
                for other in quotients:
                    if other[1] == key[2] and terms[other] == factor * key[2] and other[0] is not key[0]:
                        if self._congruent(other[0], key[0], key[2]):
                            changed[key] = (other[0], 1, key[2], FloorDiv)
        if not changed:
            return terms
        result: Terms = {}
        for key, factor in terms.items():
            made = changed.get(key, key)
            result[made] = result.get(made, 0) + factor
        return result

    def _congruent(self, x: Expr, y: Expr, modulus: int) -> bool:
        """True if the two differ by a multiple of the modulus, term by term."""
        return self._residues(x, modulus) == self._residues(y, modulus)

    def _residues(self, expr: Expr, modulus: int) -> tuple[Terms, int]:
        """The form with all factors and the base reduced, and ``(z % upper) * factor`` taken for ``z * factor``
        where they differ by a multiple of the modulus."""
        terms, base = self.form(expr)
        result: Terms = {}
        pending = list(terms.items())
        while pending:
            key, factor = pending.pop()
            if (
                type(key) is tuple
                and key[1] == 1
                and key[3] is FloorDiv
                and factor * (key[2] or 1) % modulus == 0
            ):
                inner, inner_base = self.form(key[0])
                base += inner_base * factor
                pending += [(term, scale * factor) for term, scale in inner.items()]
            else:
                result[key] = (result.get(key, 0) + factor) % modulus
        return {key: factor for key, factor in result.items() if factor}, base % modulus

    def _product(self, node: Mul) -> Form:
        terms, base = self.form(node.a)
        other, other_base = self.form(node.b)
        if other:
            if terms:
                return self._opaque_product(self.visit(node.a), self.visit(node.b))
            terms, base, other_base = other, other_base, base
        if other_base == 0:
            return {}, 0
        return {key: factor * other_base for key, factor in terms.items()}, base * other_base

    def _opaque_product(self, a: Expr, b: Expr) -> Form:
        """The product of two expressions that are not constant, in whichever order it was met first."""
        found = self.pool.table.get((Mul, b, a))
        made = self.pool.binary(Mul, a, b) if found is None else found
        self.forms[made] = {made: 1}, 0
        return self.forms[made]

    def _opaque(self, kind: NodeClass, a: Expr, b: Expr) -> Form:
        """A quotient or remainder that has no linear form, by the rules of the rewriting simplifier."""
        made = BINARY_RULES[kind](self.rewriter, a, b)
        if type(made) is kind and made.a is a and made.b is b:
            self.forms[made] = {made: 1}, 0
        return self.atom(made)

    def _divisor(self, node: Expr, kind: NodeClass) -> int | None:
        """The divisor if it is a positive constant and, under truncation, either the dividend is not negative or what
        holds for a positive dividend holds for a negative one as well: one term, or every term a multiple."""
        other, divisor = self.form(node.b)
        if other or divisor <= 0:
            return None
        if kind is Div and self.rewriter.bound(self.visit(node.a))[0] < 0:
            terms, base = self.form(node.a)
            multiples = base % divisor == 0 and all(factor % divisor == 0 for factor in terms.values())
            if not multiples and not _is_odd_part(terms, base, divisor):
                return None
        return divisor

    def _separate(self, form: Form, divisor: int) -> tuple[Form, Form]:
        """The part that the divisor divides, divided, and the rest."""
        terms, base = form
        outside = {key: factor // divisor for key, factor in terms.items() if factor % divisor == 0}
        inside = (
            {key: factor for key, factor in terms.items() if factor % divisor}
            if len(outside) < len(terms)
            else {}
        )
        if not inside or base % divisor == 0:
            return (outside, base // divisor), (inside, base % divisor)
        return (outside, 0), (inside, base)

    def _quotient(self, node: Expr, kind: NodeClass) -> Form:
        divisor = self._divisor(node, kind)
        if divisor is None:
            return self._opaque(kind, self.visit(node.a), self.visit(node.b))
        (outside, carried), (inside, base) = self._separate(self.form(node.a), divisor)
        if not inside:
            return outside, carried
        dtype = node.dtype
        rest = self.express((inside, base), dtype)
        low, high = self.rewriter.bound(rest)
        if kind is Div and low < 0:
            if not _is_odd_part(inside, base, divisor) or outside:
                return self._opaque(kind, self.visit(node.a), self.visit(node.b))
            if low > -divisor and high < divisor:
                return {}, 0
        if low >= 0 and high < divisor:
            return outside, carried
        found, found_base = self._divide(inside, base, rest, divisor, kind, dtype)
        return self._plus(outside, carried, found, found_base)

    def _plus(self, terms: Terms, base: int, other: Terms, other_base: int) -> Form:
        if not terms:
            return other, base + other_base
        total = dict(terms)
        for key, factor in other.items():
            total[key] = total.get(key, 0) + factor
        return self.joined(total, base + other_base)

    def _divide(
        self, terms: Terms, base: int, rest: Expr, divisor: int, kind: NodeClass, dtype: DataType
    ) -> Form:
        """The quotient of a part no term of which the divisor divides."""
        if base == 0 and len(terms) == 1:
            ((key, factor),) = terms.items()
            if factor > 0 and divisor % factor == 0:
                return self._split_quotient(key, divisor // factor, kind, dtype)
        split = self._split_low((terms, base), divisor, dtype)
        if split is not None:
            high, factor, _ = split
            node = self.pool.binary(
                kind, self.express(high, dtype), self.pool.integer(dtype, divisor // factor)
            )
            return self.form(node)
        return {(rest, divisor, None, kind): 1}, 0

    def _split_quotient(self, key: Any, divisor: int, kind: NodeClass, dtype: DataType) -> Form:
        """``term // divisor``."""
        index, lower, upper, split_kind = key if type(key) is tuple else (key, 1, None, kind)
        if divisor == 1:
            return {key: 1}, 0
        if split_kind is kind:
            if upper is None or upper % (lower * divisor) == 0:
                if upper == lower * divisor:
                    return {}, 0
                return {(index, lower * divisor, upper, kind): 1}, 0
            if upper <= lower * divisor:
                return {}, 0
            return {(self.express_term((index, 1, upper, kind), dtype), lower * divisor, None, kind): 1}, 0
        return {(self.express_term(key, dtype), divisor, None, kind): 1}, 0

    def _remainder(self, node: Expr, kind: NodeClass) -> Form:
        remainder_kind = FloorMod if kind is FloorDiv else Mod
        divisor = self._divisor(node, kind)
        if divisor is None:
            return self._opaque(remainder_kind, self.visit(node.a), self.visit(node.b))
        _, (inside, base) = self._separate(self.form(node.a), divisor)
        if not inside:
            return {}, base % divisor
        dtype = node.dtype
        rest = self.express((inside, base), dtype)
        low, high = self.rewriter.bound(rest)
        if kind is Div and low < 0:
            if not _is_odd_part(inside, base, divisor):
                return self._opaque(remainder_kind, self.visit(node.a), self.visit(node.b))
            if low > -divisor and high < divisor:
                return inside, base
        if low >= 0 and high < divisor:
            return inside, base
        if base == 0 and len(inside) == 1:
            ((key, factor),) = inside.items()
            if factor > 0 and divisor % factor == 0:
                terms, _ = self._split_remainder(key, divisor // factor, kind, dtype)
                return {key: scale * factor for key, scale in terms.items()}, 0
        split = self._split_low((inside, base), divisor, dtype)
        if split is not None:
            high_form, factor, (low_terms, low_base) = split
            inner = self.pool.binary(
                remainder_kind, self.express(high_form, dtype), self.pool.integer(dtype, divisor // factor)
            )
            terms, inner_base = self.form(inner)
            scaled = {key: scale * factor for key, scale in terms.items()}
            return self._plus(scaled, inner_base * factor, low_terms, low_base)
        return {(rest, 1, divisor, kind): 1}, 0

    def _split_remainder(self, key: Any, divisor: int, kind: NodeClass, dtype: DataType) -> Form:
        """``term % divisor``."""
        index, lower, upper, split_kind = key if type(key) is tuple else (key, 1, None, kind)
        if split_kind is kind:
            if upper is None or upper % (lower * divisor) == 0:
                return ({(index, lower, lower * divisor, kind): 1}, 0) if divisor > 1 else ({}, 0)
            if (lower * divisor) % upper == 0:
                return {key: 1}, 0
        return {(self.express_term(key, dtype), 1, divisor, kind): 1}, 0

    def _split_low(self, form: Form, divisor: int, dtype: DataType) -> tuple[Form, int, Form] | None:
        """``(high, g, low)`` with ``form = g * high + low``, ``g > 1``, ``g`` divides ``divisor``, ``0 <= low < g``."""
        terms, base = form
        factors = {abs(factor) for factor in terms.values()}
        common = 0
        for factor in sorted(factors, reverse=True):
            common = gcd(common, factor)
            for candidate in {common, factor}:
                if candidate == 1 or divisor % candidate:
                    continue
                low_terms = {key: scale for key, scale in terms.items() if scale % candidate}
                carried = base // candidate
                low = low_terms, base - carried * candidate
                if low_terms:
                    bound = self.rewriter.bound(self.express(low, dtype))
                    if not (bound[0] >= 0 and bound[1] < candidate):
                        continue
                high = {key: scale // candidate for key, scale in terms.items() if scale % candidate == 0}
                return (high, carried), candidate, low
        return None

    # Back to expressions.

    def express(self, form: Form, dtype: DataType) -> Expr:
        """The expression of a form: positive terms in order, then the base, then negative terms."""
        terms, base = form
        binary = self.pool.binary
        result: Expr = None
        for key, factor in terms.items():
            if factor > 0:
                term = key if type(key) is not tuple else self.express_term(key, dtype)
                if factor != 1:
                    term = binary(Mul, term, self.pool.integer(dtype, factor))
                result = term if result is None else binary(Add, result, term)
        if result is None:
            result = self.pool.integer(dtype, max(base, 0)) if terms else self.pool.integer(dtype, base)
            base = min(base, 0) if terms else 0
        elif base > 0:
            result = binary(Add, result, self.pool.integer(dtype, base))
        for key, factor in terms.items():
            if factor < 0:
                term = key if type(key) is not tuple else self.express_term(key, dtype)
                if factor != -1:
                    term = binary(Mul, term, self.pool.integer(dtype, -factor))
                result = binary(Sub, result, term)
        if base < 0:
            result = binary(Sub, result, self.pool.integer(dtype, -base))
        if result not in self.forms:
            self.forms[result] = form
        return result

    def express_term(self, key: Any, dtype: DataType) -> Expr:
        """The expression of one term."""
        if type(key) is not tuple:
            return key
        index, lower, upper, kind = key
        made = index
        if upper is not None:
            made = self.pool.binary(
                FloorMod if kind is FloorDiv else Mod, made, self.pool.integer(dtype, upper)
            )
        if lower != 1:
            made = self.pool.binary(kind, made, self.pool.integer(dtype, lower))
        if made not in self.forms:
            self.forms[made] = {key: 1}, 0
        return made

    # Everything else.

    def _other(self, node: Expr) -> Expr:
        return self.pool.adopt(node.map_children(self.visit))

    def _leaf(self, node: Expr) -> Expr:
        return self.rewriter.visit(node)

    def _compare(self, node: Expr) -> Expr:
        """A comparison of index expressions: what the sides share is cancelled."""
        kind, rw = type(node), self.rewriter
        if not is_index(node.a.dtype):
            return BINARY_RULES[kind](rw, self.visit(node.a), self.visit(node.b))
        if kind is LE or kind is GE:
            a, b = (node.a, node.b) if kind is GE else (node.b, node.a)
            return rw.logical_not(self.visit(self.pool.binary(LT, self.visit(a), self.visit(b))))
        if kind is NE:
            return rw.logical_not(self.visit(self.pool.binary(EQ, self.visit(node.a), self.visit(node.b))))
        a, b = (node.b, node.a) if kind is GT else (node.a, node.b)
        left, right = self.form(a), self.form(b)
        total = dict(left[0])
        for key, factor in right[0].items():
            total[key] = total.get(key, 0) - factor
        terms, base = self.joined(total, left[1] - right[1])
        if not terms:
            return TRUE if (base == 0 if kind is EQ else base < 0) else FALSE
        common = gcd(*terms.values())
        if kind is EQ and base % common:
            return FALSE
        if common > 1:
            terms, base = {key: factor // common for key, factor in terms.items()}, base // common
        rule = rw.eq if kind is EQ else rw.lt
        if common == 1 and len(terms) == len(left[0]) + len(right[0]):
            return rule(self.visit(a), self.visit(b))
        dtype = a.dtype
        difference = self.express((terms, base), dtype)
        low, high = rw.bound(difference)
        if low > 0 or high < 0:
            return FALSE if kind is EQ or low > 0 else TRUE
        remaining_left, remaining_right = sides(rw, rw.visit(difference))
        return rule(remaining_left, remaining_right)

    def _select(self, node: Select) -> Expr:
        rw = self.rewriter
        condition = self.visit(node.condition)
        true_value = self.speculated(condition, node.true_value)
        false_value = self.speculated(rw.logical_not(condition), node.false_value)
        return rw.select(condition, true_value, false_value)

    def speculated(self, condition: Expr, node: Expr) -> Expr:
        """The canonical form of a value that is evaluated whether or not its condition holds."""
        return self.visit(node) if self.rewriter.pool.reads_memory(node) else self.within(condition, node)

    def within(self, condition: Expr, node: Expr) -> Expr:
        """The canonical form of a node where a condition holds."""
        rw = self.rewriter
        if type(condition) is IntImm or not rw.may_assume(condition):
            return self.visit(node)
        rw.scope_depth += 1
        try:
            with rw.scope(condition):
                return self.visit(node)
        finally:
            rw.scope_depth -= 1

    def _call(self, node: Call) -> Expr:
        if getattr(node.op, "name", "") == "tir.if_then_else" and len(node.args) == 3:
            rw = self.rewriter
            condition = self.visit(node.args[0])
            if type(condition) is IntImm:
                return self.visit(node.args[1] if condition.value else node.args[2])
            true_value = self.within(condition, node.args[1])
            false_value = self.within(rw.logical_not(condition), node.args[2])
            return rw.if_then_else(node, condition, true_value, false_value)
        return self.rewriter.finish_call(node.map_children(self.visit))

    def _not(self, node: Not) -> Expr:
        return self.rewriter.logical_not(self.visit(node.a))

    def _cast(self, node: Cast) -> Expr:
        return self.rewriter.cast(node.dtype, self.visit(node.value))

    def _broadcast(self, node: Broadcast) -> Expr:
        return self.rewriter.broadcast(self.visit(node.value), node.lanes)

    def _ramp(self, node: Ramp) -> Expr:
        return self.rewriter.ramp(self.visit(node.base), self.visit(node.stride), node.lanes)

    def _let(self, node: Let) -> Expr:
        return self.rewriter.finish_let(node, self.visit)


_HANDLERS: dict[type, Callable[[Canonical, Any], Expr]] = {
    Var: Canonical._leaf,
    SizeVar: Canonical._leaf,
    IntImm: Canonical._leaf,
    Not: Canonical._not,
    Cast: Canonical._cast,
    Select: Canonical._select,
    Broadcast: Canonical._broadcast,
    Ramp: Canonical._ramp,
    Let: Canonical._let,
    Call: Canonical._call,
}
for _kind in (EQ, NE, LT, LE, GT, GE):
    _HANDLERS[_kind] = Canonical._compare


def _binary(kind: NodeClass) -> Callable[[Canonical, Any], Expr]:
    """The handler of a node of two operands that has no linear form."""
    rule = BINARY_RULES[kind]

    def handler(canonical: Canonical, node: Any) -> Expr:
        return rule(canonical.rewriter, canonical.visit(node.a), canonical.visit(node.b))

    return handler


_HANDLERS.update({kind: _binary(kind) for kind in BINARY_RULES if kind not in _HANDLERS})
