"""Where the text form defines shared expressions: for each, the innermost block that contains all of its uses.

A block is a place for statements: the text itself, the body of a function, a branch of ``if``, a clause of ``match``,
and the parentheses around a ``let`` that is an operand. Chains of ``let`` stay in the block that they end.
"""

from __future__ import annotations

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.op import Op
from tilewright.relay.adt import Match
from tilewright.relay.expr import Call, Constant, If, Let, Var
from tilewright.relay.function import Function

LEAVES = (Var, Constant, Op, GlobalVar, Constructor)
"""Expressions that are written inline, however often they are used."""


def _operands(expr: RelayExpr) -> tuple[RelayExpr, ...]:
    """The parts that are written in the block of the expression itself."""
    if isinstance(expr, Function):
        return ()
    if isinstance(expr, If):
        return (expr.cond,)
    if isinstance(expr, Match):
        return (expr.data,)
    if isinstance(expr, Call):
        # The arguments come first, so that a function that is called is close to its call.
        return (*expr.args, expr.op)
    return tuple(child for child in expr.children() if isinstance(child, RelayExpr))


def bodies(expr: RelayExpr) -> tuple[RelayExpr, ...]:
    """The parts that are written in separate blocks."""
    if isinstance(expr, Function):
        return (expr.body,)
    if isinstance(expr, If):
        return (expr.true_branch, expr.false_branch)
    if isinstance(expr, Match):
        return tuple(clause.rhs for clause in expr.clauses)
    return ()


class Placement:
    """The blocks of a text. ``home`` is the block of each expression, ``uses`` the number of its uses; ``first_block``
    the block of the first of its bodies, or of the chain of ``let`` that it begins or continues."""

    def __init__(self, root: RelayExpr) -> None:
        self.home: dict[RelayExpr, int] = {root: 0}
        self.uses: dict[RelayExpr, int] = {root: 1}
        self.first_block: dict[RelayExpr, int] = {}
        self._outer: list[int] = [-1]
        self._depth: list[int] = [0]
        self._ending: set[RelayExpr] = {root}
        for expr in reversed(self._post_order(root)):
            self._place(expr)

    def _post_order(self, root: RelayExpr) -> list[RelayExpr]:
        """Every expression but leaves, what it is made of first; counts uses on the way."""
        order: list[RelayExpr] = []
        if isinstance(root, LEAVES):
            return order
        seen: set[RelayExpr] = set()
        stack: list[tuple[RelayExpr, bool]] = [(root, False)]
        while stack:
            expr, done = stack.pop()
            if done:
                order.append(expr)
            elif expr not in seen:
                seen.add(expr)
                stack.append((expr, True))
                for part in reversed((*_operands(expr), *bodies(expr))):
                    if not isinstance(part, LEAVES):
                        self.uses[part] = self.uses.get(part, 0) + 1
                        stack.append((part, False))
        return order

    def _place(self, expr: RelayExpr) -> None:
        """Hand the block of an expression, which is settled, on to its parts."""
        home = self.home[expr]
        if isinstance(expr, Let):
            inner = home if expr in self._ending and self.uses[expr] == 1 else self._new_block(home)
            self.first_block[expr] = inner
            self._use(expr.value, inner)
            self._use(expr.body, inner)
            self._ending.add(expr.body)
            return
        for part in _operands(expr):
            self._use(part, home)
        for position, body in enumerate(bodies(expr)):
            block = self._new_block(home)
            if position == 0:
                self.first_block[expr] = block
            self._use(body, block)
            self._ending.add(body)

    def _new_block(self, outer: int) -> int:
        self._outer.append(outer)
        self._depth.append(self._depth[outer] + 1)
        return len(self._outer) - 1

    def _use(self, part: RelayExpr, block: int) -> None:
        """One more use: the home moves out to the block that holds both."""
        if isinstance(part, LEAVES):
            return
        known = self.home.get(part)
        self.home[part] = block if known is None else self._common(known, block)

    def _common(self, first: int, second: int) -> int:
        outer, depth = self._outer, self._depth
        while first != second:
            if depth[first] >= depth[second]:
                first = outer[first]
            else:
                second = outer[second]
        return first
