"""A normal form of integer expressions, which decides when two symbolic dimensions are the same.

An expression becomes a sum of products with constant coefficients: ``2 * (n + 1) - n`` and ``n + 2`` have the same
form. Anything else (a variable, a division, a minimum, a choice) is an atom. Atoms are the same if they are
the same variable, or the same operator of operands with the same forms; min and max do not mind the order of theirs.

The forms are equal only where the expressions are, in index arithmetic, which is assumed not to overflow. The opposite
does not hold: ``(2 * n) // 2`` is an atom. Who needs proofs like that one asks ``arith``.
"""

from __future__ import annotations

from tilewright.ir.expr import (
    Add,
    BinaryOpExpr,
    Cast,
    CmpExpr,
    IntImm,
    LogicalExpr,
    Max,
    Min,
    Mul,
    PrimExpr,
    Select,
    Sub,
)
from tilewright.support.dtype import INT32, INT64

Monomial = frozenset[tuple[int, int]]
"""Numbers of atoms with their powers."""
Sum = dict[Monomial, int]
"""Coefficients, none of them zero."""
Form = frozenset[tuple[Monomial, int]]

_ONE: Monomial = frozenset()
_STRUCTURED = (BinaryOpExpr, CmpExpr, LogicalExpr, Select, Cast)
_MOST_TERMS = 256
"""Larger products stay factored: expanding a power of a sum takes exponential space."""


class Forms:
    """The normal forms of expressions that are compared with one another: they share the numbers of their atoms."""

    def __init__(self) -> None:
        self._sums: dict[PrimExpr, Sum] = {}
        self._atoms: dict[object, int] = {}

    def of(self, root: PrimExpr) -> Form:
        """The form of an expression. Walks with a stack of its own: expressions may be deep."""
        pending = [root]
        while pending:
            current = pending[-1]
            if current in self._sums:
                pending.pop()
                continue
            operands = _operands(current)
            missing = [operand for operand in operands if operand not in self._sums]
            if missing:
                pending.extend(missing)
            else:
                self._sums[current] = self._combined(current, operands)
                pending.pop()
        return frozenset(self._sums[root].items())

    def _combined(self, node: PrimExpr, operands: tuple[PrimExpr, ...]) -> Sum:
        if isinstance(node, IntImm):
            return {_ONE: node.value} if node.value else {}
        if isinstance(node, Cast) and _is_widening(node):
            return self._sums[node.value]
        if isinstance(node, (Add, Sub)) and operands:
            return _added(self._sums[node.a], self._sums[node.b], 1 if isinstance(node, Add) else -1)
        if isinstance(node, Mul) and operands:
            left, right = self._sums[node.a], self._sums[node.b]
            if len(left) * len(right) <= _MOST_TERMS:
                return _multiplied(left, right)
        return {frozenset({(self._atom(node, operands), 1)}): 1}

    def _atom(self, node: PrimExpr, operands: tuple[PrimExpr, ...]) -> int:
        """The number of an atom."""
        key: object = node
        if operands:
            forms = tuple([frozenset(self._sums[operand].items()) for operand in operands])
            if isinstance(node, (Min, Max, Mul)):
                key = (type(node), frozenset(forms))
            else:
                key = (type(node), forms, node.dtype if isinstance(node, Cast) else None)
        return self._atoms.setdefault(key, len(self._atoms))


def _operands(node: PrimExpr) -> tuple[PrimExpr, ...]:
    """The operands that have forms; none for constants, variables, and what is compared by identity."""
    if not isinstance(node, _STRUCTURED):
        return ()
    operands: tuple[PrimExpr, ...] = node.children()  # type: ignore[assignment]
    # The arithmetic of floats is not associative.
    return operands if all(operand.dtype.is_integral for operand in (node, *operands)) else ()


def _is_widening(cast: Cast) -> bool:
    """True if a cast keeps the value: from an index type to one that is as wide."""
    return cast.value.dtype in (INT32, INT64) and cast.dtype in (cast.value.dtype, INT64)


def _added(left: Sum, right: Sum, sign: int) -> Sum:
    total = dict(left)
    for monomial, coefficient in right.items():
        changed = total.pop(monomial, 0) + sign * coefficient
        if changed:
            total[monomial] = changed
    return total


def _multiplied(left: Sum, right: Sum) -> Sum:
    product: Sum = {}
    for one, first in left.items():
        for other, second in right.items():
            powers = dict(one)
            for atom, power in other:
                powers[atom] = powers.get(atom, 0) + power
            product = _added(product, {frozenset(powers.items()): first * second}, 1)
    return product


def same_dimensions(first: PrimExpr, second: PrimExpr) -> bool:
    """True if two dimensions have the same normal form."""
    if first is second:
        return True
    forms = Forms()
    return forms.of(first) == forms.of(second)


def constant_dimension(extent: PrimExpr) -> int | None:
    """The value of a dimension whose normal form is a constant; None for others."""
    if isinstance(extent, IntImm):
        return extent.value
    if not isinstance(extent, _STRUCTURED):
        return None
    form = dict(Forms().of(extent))
    return form.get(_ONE, 0) if form.keys() <= {_ONE} else None
