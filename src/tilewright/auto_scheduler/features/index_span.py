"""Which elements an access touches while some of the loops around it run and the others stand still.

An index is a sum of a constant, of multiples of loop variables, and of multiples of terms that are not linear (what
the quotient and the remainder of a fused loop are). The first kind needs one addition when a loop starts to run; only
the second is evaluated again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.ir.expr import (
    Add,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    PrimExpr,
    Select,
    Sub,
    Var,
)
from tilewright.ir.functor import post_order

Interval = tuple[int, int]


@dataclass(frozen=True)
class Term:
    """An expression that is not linear in the loop variables."""

    value: PrimExpr
    variables: frozenset[Var]


@dataclass(frozen=True)
class Index:
    """One index of an access."""

    constant: int
    coefficients: Mapping[Var, int]
    terms: tuple[tuple[Term, int], ...]

    def uses(self, variable: Var) -> bool:
        """True if the index depends on a loop."""
        return variable in self.coefficients or any(variable in term.variables for term, _ in self.terms)

    def stride(self, variable: Var) -> int:
        """By how much the index changes from one iteration of a loop to the next; for a term that is not linear, its
        factor."""
        if variable in self.coefficients:
            return abs(self.coefficients[variable])
        return next((abs(factor) for term, factor in self.terms if variable in term.variables), 0)

    def interval(self, running: Mapping[Var, Interval]) -> Interval | None:
        """The least and the greatest value while these loops run; None where nothing is known."""
        low = high = self.constant
        for variable, factor in self.coefficients.items():
            least, most = running.get(variable, (0, 0))
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        for term, factor in self.terms:
            found = value_interval(term.value, running)
            if found is None:
                return None
            low += factor * (found[0] if factor > 0 else found[1])
            high += factor * (found[1] if factor > 0 else found[0])
        return low, high


def index_of(value: PrimExpr, known: Mapping[Var, Index]) -> Index:
    """The index that an expression is; ``known`` are variables that stand for others."""
    constant = 0
    coefficients: dict[Var, int] = {}
    terms: list[tuple[Term, int]] = []
    waiting: list[tuple[PrimExpr, int]] = [(value, 1)]
    while waiting:
        part, factor = waiting.pop()
        if isinstance(part, IntImm):
            constant += factor * part.value
        elif isinstance(part, Var):
            if part in known:
                given = known[part]
                constant += factor * given.constant
                for variable, one in given.coefficients.items():
                    coefficients[variable] = coefficients.get(variable, 0) + factor * one
                terms += [(term, factor * one) for term, one in given.terms]
            else:
                coefficients[part] = coefficients.get(part, 0) + factor
        elif isinstance(part, Add):
            waiting += [(part.a, factor), (part.b, factor)]
        elif isinstance(part, Sub):
            waiting += [(part.a, factor), (part.b, -factor)]
        elif isinstance(part, Mul) and isinstance(part.b, IntImm):
            waiting.append((part.a, factor * part.b.value))
        elif isinstance(part, Mul) and isinstance(part.a, IntImm):
            waiting.append((part.b, factor * part.a.value))
        else:
            variables = frozenset(one for one in post_order(part) if isinstance(one, Var))
            terms.append((Term(part, variables), factor))
    return Index(constant, {one: factor for one, factor in coefficients.items() if factor}, tuple(terms))


def value_interval(value: PrimExpr, running: Mapping[Var, Interval]) -> Interval | None:
    """The least and the greatest value of an integer expression; None where nothing is known, as of data."""
    if isinstance(value, IntImm):
        return value.value, value.value
    if isinstance(value, Var):
        return running.get(value, (0, 0))
    if isinstance(value, Cast):
        return value_interval(value.value, running)
    if isinstance(value, (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)):
        left, right = value_interval(value.a, running), value_interval(value.b, running)
        return None if left is None or right is None else _of_operator(value, left, right)
    choices: list[PrimExpr] = []
    if isinstance(value, Select):
        choices = [value.true_value, value.false_value]
    elif isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else":
        choices = list(value.args[1:])
    found = [value_interval(choice, running) for choice in choices]
    known = [interval for interval in found if interval is not None]
    if not known or len(known) < len(found):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _of_operator(value: PrimExpr, left: Interval, right: Interval) -> Interval | None:
    (low, high), (other_low, other_high) = left, right
    if isinstance(value, Add):
        return low + other_low, high + other_high
    if isinstance(value, Sub):
        return low - other_high, high - other_low
    if isinstance(value, Min):
        return min(low, other_low), min(high, other_high)
    if isinstance(value, Max):
        return max(low, other_low), max(high, other_high)
    if isinstance(value, Mul):
        corners = [one * other for one in left for other in right]
        return min(corners), max(corners)
    if other_low != other_high or other_low <= 0:
        return None
    if isinstance(value, FloorDiv):
        return low // other_low, high // other_low
    if high - low < other_low and low % other_low <= high % other_low:
        return low % other_low, high % other_low
    return 0, other_low - 1
