"""Rewriters for passes over statements: one that does not visit expressions, and one that gives each variable one
definition."""

from __future__ import annotations

from typing import Any

from tilewright.arith import Analyzer
from tilewright.ir.expr import (
    Broadcast,
    IntImm,
    IterVar,
    PrimExpr,
    Range,
    Var,
)
from tilewright.ir.functor import Mutator
from tilewright.tir.folding import FoldingSubstitute
from tilewright.tir.stmt import Allocate, AttrStmt, Evaluate, For, LetStmt, Stmt, Store

_WITHOUT_STATEMENTS = (Store, Evaluate)
"""Statements that hold nothing but expressions: most of an unrolled program."""


class StmtMutator(Mutator):
    """Rewrites statements and does not look into expressions: the cost of a pass is linear in the number of
    statements."""

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, _WITHOUT_STATEMENTS) or not isinstance(node, Stmt):
            return node
        return node.map_children(self.visit)


class _OneDefinition(StmtMutator):
    """Gives a new variable to every definition but the first of a variable."""

    def __init__(self, defined: set[Var]) -> None:
        super().__init__()
        self.defined = defined
        self.renamed: dict[Var, PrimExpr] = {}
        self.substitution = FoldingSubstitute({})

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, Stmt):
            return node.map_children(self.visit)
        return self.substitution.visit(node) if self.renamed else node

    def visit_for(self, node: For) -> Stmt:
        return self._definition(node, "loop_var")

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        return self._definition(node, "var")

    def visit_allocate(self, node: Allocate) -> Stmt:
        return self._definition(node, "buffer_var")

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        made: AttrStmt = node.map_children(self.visit)
        renamed = self.renamed.get(node.node) if isinstance(node.node, Var) else None
        return made if renamed is None else made.replace(node=renamed)

    def _definition(self, node: Any, field: str) -> Stmt:
        variable: Var = getattr(node, field)
        if variable not in self.defined:
            self.defined.add(variable)
            return node.map_children(self.visit)  # type: ignore[no-any-return]
        outer = self.renamed
        fresh = fresh_variable(variable)
        self._rename({**outer, variable: fresh})
        self.defined.add(fresh)
        made: Stmt = node.replace(**{field: fresh}).map_children(self.visit)
        self._rename(outer)
        return made

    def _rename(self, mapping: dict[Var, PrimExpr]) -> None:
        # A rewriter remembers what it met, so another mapping needs another rewriter.
        self.renamed = mapping
        self.substitution = FoldingSubstitute(mapping)


def fresh_variable(variable: Var, name: str | None = None) -> Var:
    """Another variable of the same class and type."""
    return variable.replace(name=name or variable.name)


def with_one_definition(stmt: Stmt, defined: set[Var] | None = None) -> Stmt:
    """The statement with a distinct variable for every loop, binding and allocation.

    Passes that repeat statements end with this. ``defined`` are variables that must not be defined again.
    """
    return _OneDefinition(set() if defined is None else defined).visit(stmt)  # type: ignore[no-any-return]


def broadcast(value: PrimExpr, lanes: int) -> PrimExpr:
    """A scalar in this many lanes; a value that has them already as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


def bind_range(analyzer: Analyzer, variable: Var, start: PrimExpr, extent: PrimExpr) -> None:
    """Tell the analyzer what a loop variable runs over; what it knew of the variable before is forgotten.

    A range of one is not entered as a value: the variable stays a variable, and another loop may define it again.
    """
    if isinstance(extent, IntImm) and extent.value == 1:
        analyzer.update(variable, analyzer.const_int_bound(start), override=True)
    else:
        analyzer.bind(variable, Range.from_min_extent(start, extent), allow_override=True)


def thread_axis(node: AttrStmt) -> IterVar | None:
    """The axis that a ``thread_extent`` or ``virtual_thread`` attribute binds."""
    if node.attr_key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
        return node.node
    return None
