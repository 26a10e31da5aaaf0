"""Moves an attribute from several statements to the one that encloses them.

Statements of a sequence that carry the same attribute with the same value share one ``AttrStmt``; the attribute moves
out of a loop or branch whose body carries it, unless it uses what the statement defines. It stays inside an allocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt, stmt_seq
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


class _Lifter(StmtMutator):
    """Each statement comes back without the attribute if all of it carries it, and with it recorded in ``lifted``."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.lifted: AttrStmt | None = None

    def top(self, stmt: Stmt) -> Stmt:
        """A statement with its attribute put back around it."""
        made: Stmt = self.visit(stmt)
        attribute, self.lifted = self.lifted, None
        return made if attribute is None else attribute.replace(body=made)

    def visit_default(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return node
        return node.map_children(lambda child: self.top(child) if isinstance(child, Stmt) else child)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != self.key:
            return self._through(node, None)
        body = self.top(node.body)
        self.lifted = node
        return body

    def visit_for(self, node: For) -> Stmt:
        return self._through(node, node.loop_var)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        return self._through(node, node.var)

    def visit_allocate(self, node: Allocate) -> Stmt:
        body = self.top(node.body)
        return node if body is node.body else node.replace(body=body)

    def _through(self, node: Any, defined: Var | None) -> Stmt:
        """A statement with one body: the attribute leaves it unless it uses what the statement defines."""
        body: Stmt = self.visit(node.body)
        attribute = self.lifted
        if attribute is not None and defined is not None:
            if any(found is defined for found in post_order(attribute.value)):
                body, self.lifted = attribute.replace(body=body), None
        return node if body is node.body else node.replace(body=body)  # type: ignore[no-any-return]

    def visit_if_then_else(self, node: IfThenElse) -> Stmt:
        if node.else_case is None:
            body = self.visit(node.then_case)
            return node if body is node.then_case else node.replace(then_case=body)
        seq = self._group([node.then_case, node.else_case])
        if len(seq) == 1:
            attribute, cases = seq[0]
            self.lifted = attribute
            return node.replace(then_case=cases[0], else_case=cases[1])
        then_case, else_case = [_wrapped(attribute, parts) for attribute, parts in seq]
        return node.replace(then_case=then_case, else_case=else_case)

    def visit_seq_stmt(self, node: SeqStmt) -> Stmt:
        groups = self._group(node.seq)
        if len(groups) == 1:
            attribute, parts = groups[0]
            self.lifted = attribute
            return node if attribute is None else stmt_seq(*parts)
        return stmt_seq(*[_wrapped(attribute, parts) for attribute, parts in groups])

    def _group(self, stmts: Any) -> list[tuple[AttrStmt | None, list[Stmt]]]:
        """Neighbours with the same attribute together."""
        groups: list[tuple[AttrStmt | None, list[Stmt]]] = []
        for stmt in stmts:
            made = self.visit(stmt)
            attribute, self.lifted = self.lifted, None
            if groups and _same(groups[-1][0], attribute):
                groups[-1][1].append(made)
            else:
                groups.append((attribute, [made]))
        return groups


def _same(a: AttrStmt | None, b: AttrStmt | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.node is b.node or expr_deep_equal(a.node, b.node)) and expr_deep_equal(a.value, b.value)


def _wrapped(attribute: AttrStmt | None, parts: list[Stmt]) -> Stmt:
    body = stmt_seq(*parts)
    return body if attribute is None else attribute.replace(body=body)


def lift_attr_scope(stmt: Stmt, attr_key: str) -> Stmt:
    """The statement with the attribute as far out as it goes."""
    return _Lifter(attr_key).top(stmt)


@dataclass(frozen=True)
class LiftAttrScope(PrimFuncPass):
    """Moves the attribute ``attr_key`` outwards and joins equal neighbours."""

    attr_key: str

    name = "tir.LiftAttrScope"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(lift_attr_scope(function.body, self.attr_key))
