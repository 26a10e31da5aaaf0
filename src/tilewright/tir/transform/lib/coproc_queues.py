"""Tokens between the queues of a coprocessor.

Code in a ``coproc_scope`` runs in the queue that the scope names, and queues run independently. Where code of one queue
follows code of another, the first pushes a token ``(from, to)`` when it is done, and the second pops it first. A loop
whose last part must be followed by its first one pushes a token at the end of every iteration and pops one at the
start: one more is pushed before the loop, and one popped after it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tilewright.ir.expr import Call, IntImm, IterVar
from tilewright.ir.op import Op
from tilewright.support.errors import LoweringError
from tilewright.tir.stmt import AttrStmt, Evaluate, For, IfThenElse, Stmt, While
from tilewright.tir.transform.lib.scoped_rewriter import StmtVisitor

Token = tuple[int, int]
Insertions = defaultdict[Stmt, list[Stmt]]


@dataclass(frozen=True, eq=False)
class _Part:
    """A statement that uses queues: the queues it may start and end in, and the tokens that it pops first and pushes
    last without a counterpart inside."""

    node: Stmt
    first: frozenset[int]
    last: frozenset[int]
    popped: frozenset[Token] = frozenset()
    pushed: frozenset[Token] = frozenset()


class QueueTokens(StmtVisitor):
    """Finds where tokens are pushed and popped: statements before and after others."""

    def __init__(self, axis: IterVar, prefix: str) -> None:
        super().__init__()
        self.axis = axis
        self.push, self.pop = Op.get(f"{prefix}.coproc_dep_push"), Op.get(f"{prefix}.coproc_dep_pop")
        self.before: Insertions = defaultdict(list)
        self.after: Insertions = defaultdict(list)
        self._first: _Part | None = None
        self._last: _Part | None = None

    def plan(self, body: Stmt) -> None:
        """Find the tokens of a whole function."""
        self._closed(body)

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key != "coproc_scope" or node.node is not self.axis:
            self.visit(node.body)
            return
        if not isinstance(node.value, IntImm):
            raise LoweringError(f"the queue of a coproc_scope is a constant, not {node.value}")
        queue = frozenset({node.value.value})
        self._follow(_Part(node.body, queue, queue))

    def visit_for(self, node: For) -> None:
        self._loop(node, node.body)

    def visit_while(self, node: While) -> None:
        self._loop(node, node.body)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        parts = [self._closed(node.then_case)]
        if node.else_case is not None:
            parts.append(self._closed(node.else_case))
        queues = [part for part in parts if part is not None]
        if queues:
            first = frozenset().union(*[part[0].first for part in queues])
            last = frozenset().union(*[part[1].last for part in queues])
            self._follow(_Part(node, first, last))

    def _ends(self, body: Stmt) -> tuple[_Part, _Part] | None:
        """The first and last part of a body of its own."""
        outer = self._first, self._last
        self._first = self._last = None
        self.visit(body)
        found = (self._first, self._last)
        self._first, self._last = outer
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def _closed(self, body: Stmt) -> tuple[_Part, _Part] | None:
        """The ends of a body that pops what it pushes: tokens that its ends lack are added beside them."""
        ends = self._ends(body)
        if ends is not None:
            self._push_before(ends[0], ends[0].popped)
            self._pop_after(ends[1], ends[1].pushed)
        return ends

    def _loop(self, node: Stmt, body: Stmt) -> None:
        ends = self._ends(body)
        if ends is None:
            return
        first, last = ends
        carried = self._connect(last, first)
        self._follow(_Part(node, first.first, last.last, carried, carried))

    def _follow(self, part: _Part) -> None:
        """Continue the current sequence with a part."""
        if self._last is None:
            self._first = part
        else:
            self._connect(self._last, part)
        self._last = part

    def _connect(self, earlier: _Part, later: _Part) -> frozenset[Token]:
        """Let one part wait for another; the tokens that go from the one to the other."""
        needed = {(one, other) for one in earlier.last for other in later.first if one != other}
        added = needed - earlier.pushed - later.popped
        for token in sorted(added):
            self.after[earlier.node].append(_token(self.push, token))
            self.before[later.node].append(_token(self.pop, token))
        self._pop_after(earlier, earlier.pushed - later.popped)
        self._push_before(later, later.popped - earlier.pushed)
        return frozenset(added) | (earlier.pushed & later.popped)

    def _push_before(self, part: _Part, tokens: frozenset[Token]) -> None:
        self.before[part.node] += [_token(self.push, token) for token in sorted(tokens)]

    def _pop_after(self, part: _Part, tokens: frozenset[Token]) -> None:
        self.after[part.node] += [_token(self.pop, token) for token in sorted(tokens)]


def _token(op: Op, token: Token) -> Stmt:
    return Evaluate(Call("int32", op, list(token)))
