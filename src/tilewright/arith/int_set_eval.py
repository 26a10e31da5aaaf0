"""Evaluation of expressions over sets: from the sets of variables to an interval that contains every value.

Sums are evaluated as linear forms, so that ``i * 4 + j`` over symbolic ranges gives simplified ends at once
and terms that cancel do not widen the result. A quotient of ends is simplified with them: ``x`` in ``[16 * o,
16 * o + 15]`` gives ``x // 4`` in ``[4 * o, 4 * o + 3]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from tilewright.arith.canonical import Terms
from tilewright.arith.const_int_bound import type_bound
from tilewright.arith.core import AnalyzerCore, knowing_nothing
from tilewright.arith.int_set import NEG_INF, POS_INF, IntervalSet, IntSet, as_interval, greater, lesser
from tilewright.arith.pool import FALSE, TRUE, Expr, is_index
from tilewright.ir import operators
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
    ExprLike,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Range,
    Select,
    SizeVar,
    Sub,
    Var,
)

Ends = tuple[Expr, Expr]
Domains = Mapping[Any, Any]
"""From variables or axes to sets, ranges or single expressions."""

EVERYTHING: Ends = (NEG_INF, POS_INF)


def eval_int_set(expr: ExprLike, dom_map: Domains, analyzer: AnalyzerCore | None = None) -> IntervalSet:
    """An interval that contains the values of the expression when variables run over their sets.

    The ends of a variable's set may name other variables of the map: those are relaxed, too.
    """
    given = operators.as_expr(expr)
    analyzer = analyzer or knowing_nothing()
    return IntervalSet(*analyzer.deeply(Evaluator(analyzer, dom_map).interval, given))


def eval_set(
    expr: ExprLike | IntSet | Range, dom_map: Domains, analyzer: AnalyzerCore | None = None
) -> IntervalSet:
    """``eval_int_set`` of an expression, a range or a set."""
    if isinstance(expr, (IntSet, Range)):
        return relax(as_interval(expr), dom_map, analyzer)
    return eval_int_set(expr, dom_map, analyzer)


def relax(given: IntervalSet, dom_map: Domains, analyzer: AnalyzerCore | None = None) -> IntervalSet:
    """The interval that contains a set whatever values the variables of the map take."""
    analyzer = analyzer or knowing_nothing()
    evaluator = Evaluator(analyzer, dom_map)
    low: Expr = given.min_value
    high: Expr = given.max_value
    if low is not NEG_INF and low is not POS_INF:
        low = analyzer.deeply(evaluator.interval, low)[0]
    if high is not NEG_INF and high is not POS_INF:
        high = analyzer.deeply(evaluator.interval, high)[1]
    return IntervalSet(low, high)


class Evaluator:
    """Evaluates expressions over one map of sets."""

    def __init__(self, analyzer: AnalyzerCore, domains: Domains) -> None:
        self.analyzer = analyzer
        self.canonical = analyzer.canonical
        self.pool = analyzer.pool
        self.bound = analyzer.bounds.bound
        # Ranges become intervals when they are asked for: an expression names few of the variables of a map.
        self.domains = {
            (key.var if isinstance(key, IterVar) else key): value for key, value in domains.items()
        }
        self.memo: dict[Expr, Ends] = {}
        self.active: set[Var] = set()

    def interval(self, expr: Expr) -> Ends:
        """The ends for any expression."""
        if isinstance(expr, Var) and expr in self.domains:
            return self.visit(expr)
        return self.visit(self.canonical.visit(self.analyzer.rewriter.visit(expr)))

    def visit(self, node: Expr) -> Ends:
        """The ends for a canonical expression."""
        found = self.memo.get(node)
        if found is not None:
            return found
        kind = type(node)
        if kind is IntImm:
            return node, node
        if (kind is Add or kind is Sub or kind is Mul) and is_index(node.dtype):
            made = self._linear(node)
        else:
            handler = _HANDLERS.get(kind)
            made = self._opaque(node) if handler is None else handler(self, node)
        if not self.active:
            # Inside the expansion of a variable's own set, that variable stands for itself: not a result to keep.
            self.memo[node] = made
        return made

    def simplify(self, expr: Expr) -> Expr:
        """The simplified form of an expression made here."""
        return self.canonical.visit(self.analyzer.rewriter.visit(expr))

    def _var(self, node: Var) -> Ends:
        found = self.domains.get(node)
        if found is None or node in self.active:
            return node, node
        found = self.domains[node] = as_interval(found)
        low: Expr = found.min_value
        high: Expr = found.max_value
        self.active.add(node)
        try:
            if low is not NEG_INF and low is not POS_INF:
                low = self.interval(low)[0]
            if high is not NEG_INF and high is not POS_INF:
                high = self.interval(high)[1]
        finally:
            self.active.discard(node)
        if not self.active:
            self.memo[node] = low, high
        return low, high

    def _linear(self, node: Expr) -> Ends:
        terms, base = self.canonical.form(node)
        if len(terms) == 1 and type(node) is Mul and node in terms:
            return self._product(node)
        dtype = node.dtype
        low: Terms | None = {}
        high: Terms | None = {}
        low_base = high_base = base
        moved = False
        for key, factor in terms.items():
            term = self.canonical.express_term(key, dtype)
            least, greatest = self.visit(term)
            moved = moved or least is not term or greatest is not term
            if factor < 0:
                least, greatest = greatest, least
            low, low_base = self._accumulate(low, low_base, least, factor)
            high, high_base = self._accumulate(high, high_base, greatest, factor)
        if not moved:
            return node, node
        express, joined = self.canonical.express, self.canonical.joined
        return (
            NEG_INF if low is None else express(joined(low, low_base), dtype),
            POS_INF if high is None else express(joined(high, high_base), dtype),
        )

    def _accumulate(self, total: Terms | None, base: int, end: Expr, factor: int) -> tuple[Terms | None, int]:
        """Add ``factor * end``; None once an end is infinite."""
        if total is None or end is NEG_INF or end is POS_INF:
            return None, 0
        terms, end_base = self.canonical.form(end)
        for key, scale in terms.items():
            total[key] = total.get(key, 0) + factor * scale
        return total, base + factor * end_base

    def _product(self, node: Mul) -> Ends:
        """A product of two expressions neither of which is constant."""
        a, b = self.visit(node.a), self.visit(node.b)
        if a[0] is node.a and a[1] is node.a and b[0] is node.b and b[1] is node.b:
            return node, node
        if a[0] is a[1]:
            a, b = b, a
        if b[0] is b[1]:
            return self._scaled(a, b[0])
        if self._not_negative(a[0]) and self._not_negative(b[0]):
            high = POS_INF if POS_INF in (a[1], b[1]) else self.simplify(operators.multiply(a[1], b[1]))
            return self.simplify(operators.multiply(a[0], b[0])), high
        ends = [
            self.bound(end) if end is not NEG_INF and end is not POS_INF else (-inf, inf) for end in (*a, *b)
        ]
        if all(low == high for low, high in ends):
            corners = [int(p[0] * q[0]) for p in ends[:2] for q in ends[2:]]
            return self.pool.integer(node.dtype, min(corners)), self.pool.integer(node.dtype, max(corners))
        return EVERYTHING

    def _scaled(self, ends: Ends, factor: Expr) -> Ends:
        """An interval times an expression whose sign may not be known."""
        low, high = self.bound(factor)
        least = ends[0] if ends[0] is NEG_INF else self.simplify(operators.multiply(ends[0], factor))
        greatest = ends[1] if ends[1] is POS_INF else self.simplify(operators.multiply(ends[1], factor))
        if low >= 0:
            return least, greatest
        if high <= 0:
            return (NEG_INF if greatest is POS_INF else greatest), (POS_INF if least is NEG_INF else least)
        if least is NEG_INF or greatest is POS_INF:
            return EVERYTHING
        return self.simplify(operators.minimum(least, greatest)), self.simplify(
            operators.maximum(least, greatest)
        )

    def _not_negative(self, end: Expr) -> bool:
        return end is not NEG_INF and end is not POS_INF and bool(self.bound(end)[0] >= 0)

    def _unchanged(self, node: Expr) -> tuple[Ends, Ends, bool]:
        """The ends of both operands, and whether they are the operands themselves."""
        a, b = self.visit(node.a), self.visit(node.b)
        return a, b, a[0] is node.a and a[1] is node.a and b[0] is node.b and b[1] is node.b

    def _quotient_of(self, kind: type[Expr], end: Expr, divisor: Expr) -> Expr:
        """A quotient of ends. The set of a variable may be given in a wider type than the variable has."""
        return self.simplify(kind(*operators.match_types(end, divisor)))

    def _quotient(self, node: Expr) -> Ends:
        a, b, unchanged = self._unchanged(node)
        if unchanged:
            return node, node
        if b[0] is not b[1]:
            return self._bounded(node, a, b)
        kind, divisor = type(node), b[0]
        low, high = self.bound(divisor)
        if low <= 0 <= high:
            return self._quotient_by_size(a, divisor) if low == 0 and kind is FloorDiv else EVERYTHING
        least = a[0] if a[0] is NEG_INF else self._quotient_of(kind, a[0], divisor)
        greatest = a[1] if a[1] is POS_INF else self._quotient_of(kind, a[1], divisor)
        if low > 0:
            return least, greatest
        return (NEG_INF if greatest is POS_INF else greatest), (POS_INF if least is NEG_INF else least)

    def _quotient_by_size(self, a: Ends, divisor: Expr) -> Ends:
        """A quotient by a size, which is not zero where there is a quotient: the outer part of a fused loop."""
        if not self._not_negative(a[0]) or a[1] is POS_INF:
            return EVERYTHING
        one = self.pool.integer(a[1].dtype, 1)
        end = self.simplify(operators.add(a[1], one))
        count = self._quotient_of(FloorDiv, end, divisor)
        if not self.analyzer.can_prove_equal(operators.multiply(count, divisor), end):
            return EVERYTHING
        return self._quotient_of(FloorDiv, a[0], divisor), self.simplify(operators.subtract(count, one))

    def _bounded(self, node: Expr, a: Ends, b: Ends) -> Ends:
        """A quotient by a positive interval: of a dividend that is not negative, between zero and the dividend."""
        if self._not_negative(b[0]) and self.bound(b[0])[0] > 0 and self._not_negative(a[0]):
            least = (
                self.pool.integer(node.dtype, 0)
                if b[1] is POS_INF
                else self._quotient_of(FloorDiv, a[0], b[1])
            )
            return least, a[1] if a[1] is POS_INF else self._quotient_of(FloorDiv, a[1], b[0])
        return EVERYTHING

    def _remainder(self, node: Expr) -> Ends:
        a, b, unchanged = self._unchanged(node)
        if unchanged:
            return node, node
        dtype = node.dtype
        zero = self.pool.integer(dtype, 0)
        divisor = b[1]
        if divisor is POS_INF or b[0] is NEG_INF or self.bound(b[0])[0] < 0:
            return EVERYTHING
        # A size is not zero where there is a remainder by it.
        if self.bound(b[0])[0] == 0 and (b[0] is not b[1] or type(node) is not FloorMod):
            return EVERYTHING
        last = self.simplify(operators.subtract(divisor, 1))
        not_negative = self._not_negative(a[0])
        if type(node) is Mod and not not_negative:
            return self.simplify(operators.subtract(1, divisor)), last
        if a[0] is NEG_INF or a[1] is POS_INF or b[0] is not b[1]:
            return zero, last
        first_quotient = self._quotient_of(FloorDiv, a[0], divisor)
        last_quotient = self._quotient_of(FloorDiv, a[1], divisor)
        if first_quotient is last_quotient:
            start = operators.multiply(first_quotient, divisor)
            return self.simplify(operators.subtract(a[0], start)), self.simplify(
                operators.subtract(a[1], start)
            )
        if not_negative and type(divisor) is not IntImm:
            if self.analyzer.can_prove(operators.less(a[1], divisor)):
                return a
        return zero, last

    def _minimum(self, node: Expr) -> Ends:
        a, b, unchanged = self._unchanged(node)
        if unchanged:
            return node, node
        choose = lesser if type(node) is Min else greater
        return self._end(choose(a[0], b[0])), self._end(choose(a[1], b[1]))

    def _end(self, end: Expr) -> Expr:
        return end if end is NEG_INF or end is POS_INF else self.simplify(end)

    def _union(self, a: Ends, b: Ends) -> Ends:
        return self._end(lesser(a[0], b[0])), self._end(greater(a[1], b[1]))

    def _select(self, node: Select) -> Ends:
        condition = self.visit(node.condition)
        a, b = self.visit(node.true_value), self.visit(node.false_value)
        if condition[0] is node.condition and condition[1] is node.condition:
            parts = ((a, node.true_value), (b, node.false_value))
            if all(ends[0] is part and ends[1] is part for ends, part in parts):
                return node, node
        return self._union(a, b)

    def _call(self, node: Call) -> Ends:
        name = getattr(node.op, "name", "")
        if name == "tir.likely":
            return self.visit(node.args[0])
        if name == "tir.if_then_else":
            condition = self.visit(node.args[0])
            if condition[0] is condition[1] is TRUE:
                return self.visit(node.args[1])
            if condition[0] is condition[1] is FALSE:
                return self.visit(node.args[2])
            if not self._mentions(node):
                return node, node
            return self._union(self.visit(node.args[1]), self.visit(node.args[2]))
        return self._opaque(node)

    def _cast(self, node: Cast) -> Ends:
        low, high = self.visit(node.value)
        if low is node.value and high is node.value:
            return node, node
        if is_index(node.dtype) and node.value.dtype.is_integral:
            return (
                low if low is NEG_INF else self.simplify(operators.cast(node.dtype, low)),
                high if high is POS_INF else self.simplify(operators.cast(node.dtype, high)),
            )
        return self._opaque(node)

    def _ramp(self, node: Ramp) -> Ends:
        last = operators.add(node.base, operators.multiply(node.stride, node.lanes - 1))
        return self._union(self.visit(node.base), self.interval(last))

    def _broadcast(self, node: Broadcast) -> Ends:
        return self.visit(node.value)

    def _mentions(self, node: Expr) -> bool:
        """True if a variable of the map occurs below."""
        stack, seen = [node], {node}
        while stack:
            current = stack.pop()
            if isinstance(current, Var):
                if current in self.domains and current not in self.active:
                    return True
                continue
            for child in current.children():
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def _opaque(self, node: Expr) -> Ends:
        """An expression of which only constant bounds are known."""
        if not self._mentions(node):
            return node, node
        if not node.dtype.is_integral:
            return EVERYTHING
        low, high = self.bound(node)
        whole = type_bound(node.dtype)
        wide = is_index(node.dtype)
        element = node.dtype.element
        return (
            NEG_INF if low == -inf or (wide and low <= whole[0]) else self.pool.integer(element, int(low)),
            POS_INF if high == inf or (wide and high >= whole[1]) else self.pool.integer(element, int(high)),
        )

    def _truth(self, node: Expr) -> Ends:
        """A comparison or a logical expression: decided by the interval of the difference, or open."""
        if not self._mentions(node):
            return node, node
        kind = type(node)
        if kind is Not:
            low, high = self.visit(node.a)
            return self.simplify(operators.logical_not(high)), self.simplify(operators.logical_not(low))
        if kind is And or kind is Or:
            a, b = self.visit(node.a), self.visit(node.b)
            join = operators.logical_and if kind is And else operators.logical_or
            return self.simplify(join(a[0], b[0])), self.simplify(join(a[1], b[1]))
        if not is_index(node.a.dtype):
            return FALSE, TRUE
        low, high = self.interval(operators.subtract(node.a, node.b))
        verdict = _verdict(kind, self._sign(low)[0], self._sign(high)[1])
        return (FALSE, TRUE) if verdict is None else (TRUE, TRUE) if verdict else (FALSE, FALSE)

    def _sign(self, end: Expr) -> tuple[float, float]:
        if end is NEG_INF:
            return -inf, -inf
        return (inf, inf) if end is POS_INF else self.bound(end)


def _verdict(kind: type, low: float, high: float) -> bool | None:
    """Whether a comparison holds for every difference from low to high, for none, or that is not known."""
    if kind in (GT, GE):
        kind, low, high = (LT if kind is GT else LE), -high, -low
    if kind is LT:
        return True if high < 0 else False if low >= 0 else None
    if kind is LE:
        return True if high <= 0 else False if low > 0 else None
    if low > 0 or high < 0:
        return kind is NE
    return kind is EQ if low == 0 == high else None


_HANDLERS: dict[type, Callable[[Evaluator, Any], Ends]] = {
    Var: Evaluator._var,
    SizeVar: Evaluator._var,
    FloorDiv: Evaluator._quotient,
    Div: Evaluator._quotient,
    FloorMod: Evaluator._remainder,
    Mod: Evaluator._remainder,
    Min: Evaluator._minimum,
    Max: Evaluator._minimum,
    Select: Evaluator._select,
    Call: Evaluator._call,
    Cast: Evaluator._cast,
    Ramp: Evaluator._ramp,
    Broadcast: Evaluator._broadcast,
}
for _kind in (EQ, NE, LT, LE, GT, GE, And, Or, Not):
    _HANDLERS[_kind] = Evaluator._truth
