"""Facts implied by a condition that holds: bounds and congruences of its parts, and its own truth value."""

from __future__ import annotations

from math import inf

from tilewright.arith.canonical import Canonical
from tilewright.arith.const_int_bound import Bound, BoundAnalyzer, floor_quotient
from tilewright.arith.modular_set import ModularAnalyzer, intersect, normal
from tilewright.arith.pool import FALSE, TRUE, Expr, is_index
from tilewright.arith.rewrite.simplifier import Rewriter
from tilewright.ir.expr import (
    EQ,
    LE,
    LT,
    Add,
    And,
    Call,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Sub,
)


def learn(
    condition: Expr, rewriter: Rewriter, canonical: Canonical, bounds: BoundAnalyzer, modular: ModularAnalyzer
) -> None:
    """Enter a simplified condition and what follows from it into the tables of the present scope."""
    conjuncts = [condition]
    while conjuncts:
        fact = conjuncts.pop()
        kind = type(fact)
        if kind is And:
            conjuncts += (fact.b, fact.a)
            continue
        if kind is Call and getattr(fact.op, "name", "") == "tir.likely":
            conjuncts.append(fact.args[0])
            continue
        if kind is IntImm or fact.dtype.lanes > 1:
            continue
        opposite = rewriter.logical_not(fact)
        if type(opposite) is not IntImm:
            rewriter.truths[opposite] = FALSE
        rewriter.truths[fact] = TRUE
        if kind is EQ:
            rewriter.truths[rewriter.make(EQ, fact.b, fact.a)] = TRUE
        if kind in (EQ, LT, LE) and fact.a.dtype.is_integral:
            _learn_comparison(fact, rewriter, canonical, bounds, modular)
        elif kind is Not and fact.a.dtype.is_bool:
            bounds.facts[fact.a] = (0, 0)


def _learn_comparison(
    fact: Expr, rewriter: Rewriter, canonical: Canonical, bounds: BoundAnalyzer, modular: ModularAnalyzer
) -> None:
    kind, a, b = type(fact), fact.a, fact.b
    # What the conjuncts before have said counts here.
    bounds.memo.clear()
    gap = 1 if kind is LT else 0
    low_a, high_a = bounds.bound(a)
    low_b, high_b = bounds.bound(b)
    _restrict(bounds, a, (low_b if kind is EQ else -inf, high_b - gap))
    _restrict(bounds, b, (low_a + gap, high_a if kind is EQ else inf))
    if not is_index(a.dtype):
        return
    if type(a) is not IntImm and type(b) is not IntImm:
        difference: Bound = (0 if kind is EQ else -inf, -gap)
        opposite: Bound = (gap, 0 if kind is EQ else inf)
        for left, right, bound in ((a, b, difference), (b, a, opposite)):
            form = rewriter.sub(left, right)
            _restrict(bounds, form, bound)
            _restrict(bounds, canonical.visit(form), bound)
    if (
        kind is EQ
        and type(b) is IntImm
        and type(a) in (FloorMod, Mod)
        and type(a.b) is IntImm
        and a.b.value != 0
    ):
        found = normal(a.b.value, b.value)
        known = modular.facts.get(a.a)
        modular.facts[a.a] = found if known is None else intersect(known, found)


def _restrict(bounds: BoundAnalyzer, expr: Expr, bound: Bound) -> None:
    """Record that an expression is within a bound, and what that implies for its parts."""
    stack = [(expr, bound)]
    while stack:
        node, (low, high) = stack.pop()
        kind = type(node)
        if kind is IntImm or (low == -inf and high == inf):
            continue
        known = bounds.facts.get(node, (-inf, inf))
        sharper = max(known[0], low), min(known[1], high)
        if sharper == known:
            continue
        bounds.facts[node] = sharper
        if not is_index(node.dtype):
            continue
        if kind is Add or kind is Sub:
            a, b = bounds.bound(node.a), bounds.bound(node.b)
            if kind is Add:
                stack.append((node.a, (low - b[1], high - b[0])))
                stack.append((node.b, (low - a[1], high - a[0])))
            else:
                stack.append((node.a, (low + b[0], high + b[1])))
                stack.append((node.b, (a[0] - high, a[1] - low)))
        elif kind is Mul and type(node.b) is IntImm and node.b.value != 0:
            ends = (low, high) if node.b.value > 0 else (-high, -low)
            factor = abs(node.b.value)
            stack.append((node.a, (-floor_quotient(-ends[0], factor), floor_quotient(ends[1], factor))))
        elif kind is FloorDiv and type(node.b) is IntImm and node.b.value > 0:
            stack.append((node.a, (low * node.b.value, high * node.b.value + node.b.value - 1)))
        elif kind is Max:
            stack += ((node.a, (-inf, high)), (node.b, (-inf, high)))
        elif kind is Min:
            stack += ((node.a, (low, inf)), (node.b, (low, inf)))
