"""Moves loop-invariant conditions out of loops.

A loop whose body is a branch on a condition that does not depend on the loop becomes a branch with the loop inside. Of
a conjunction without an else branch, the invariant parts move. Conditions on what an attribute around them is about, a
thread index for example, move only with ``support_block_scope_hosting`` in the context; then they also pass the thread
indices between them and a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import And, IterVar, PrimExpr, Var
from tilewright.ir.functor import uses_var
from tilewright.ir.module import IRModule
from tilewright.ir.pass_config import with_own_options
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import statements_in
from tilewright.tir.stmt import AttrStmt, For, IfThenElse, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.effects import is_pure
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator, thread_axis, with_one_definition


class _Hoister(StmtMutator):
    def __init__(self, from_threads: bool, respects_attributes: bool) -> None:
        super().__init__()
        self.from_threads = from_threads
        self.respects_attributes = respects_attributes
        self.repeated = False
        self.attributed: list[Var] = []

    def visit_for(self, node: For) -> Stmt:
        made: For = node.map_children(self.visit)
        return self._hoisted(made, made.loop_var)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        about = node.node.var if isinstance(node.node, IterVar) else node.node
        if not isinstance(about, Var):
            return node.map_children(self.visit)
        self.attributed.append(about)
        made: Stmt = node.map_children(self.visit)
        self.attributed.pop()
        return made

    def _hoisted(self, node: For, variable: Var) -> Stmt:
        branch, threads = self._branch(node.body)
        if not isinstance(branch, IfThenElse):
            return node
        fixed = [variable, *[axis.var for axis in map(thread_axis, threads) if axis is not None]]
        if self.respects_attributes and not self.from_threads:
            fixed += self.attributed
        moving, staying = _sorted_parts(branch.condition, fixed)
        if moving is None or (staying is not None and branch.else_case is not None):
            return node
        inner = (
            branch.then_case if staying is None else IfThenElse(staying, branch.then_case, None, branch.span)
        )
        otherwise: Stmt | None = None
        if branch.else_case is not None:
            self.repeated = True
            otherwise = self._hoisted(node.replace(body=_within(threads, branch.else_case)), variable)
        # What is left in the loop may be a branch of its own.
        repeated = self._hoisted(node.replace(body=_within(threads, inner)), variable)
        return IfThenElse(moving, repeated, otherwise, branch.span)

    def _branch(self, body: Stmt) -> tuple[Stmt, list[AttrStmt]]:
        """What a body does, and the thread indices around that, where conditions may pass them."""
        threads: list[AttrStmt] = []
        while self.from_threads and isinstance(body, AttrStmt) and thread_axis(body) is not None:
            threads.append(body)
            body = body.body
        return body, threads


def _within(threads: list[AttrStmt], body: Stmt) -> Stmt:
    for attribute in reversed(threads):
        body = attribute.replace(body=body)
    return body


def _sorted_parts(condition: PrimExpr, variables: Sequence[Var]) -> tuple[PrimExpr | None, PrimExpr | None]:
    """The parts of a conjunction that do not depend on the variables or on memory, and the rest."""
    moving: PrimExpr | None = None
    staying: PrimExpr | None = None
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And):
            waiting += [part.b, part.a]
        elif uses_var(part, variables) or not is_pure(part):
            staying = part if staying is None else operators.logical_and(staying, part)
        else:
            moving = part if moving is None else operators.logical_and(moving, part)
    return moving, staying


def hoist_if_then_else(stmt: Stmt, from_threads: bool = False, respects_attributes: bool = True) -> Stmt:
    """The statement with its conditions as far out as they go; see the module's text."""
    if not any(isinstance(found, IfThenElse) for found in statements_in(stmt)):
        return stmt
    hoister = _Hoister(from_threads, respects_attributes)
    made: Stmt = hoister.visit(stmt)
    return with_one_definition(made) if hoister.repeated else made


@dataclass(frozen=True)
class HoistIfThenElse(PrimFuncPass):
    """Moves conditions out of loops. ``variant`` "basic" looks at loops only: it moves conditions on thread indices out
    of them, and none past an index, whatever the context says.

    ``support_block_scope_hosting`` wins over that of ``tir.HoistIfThenElse`` in the context.
    """

    variant: str | None = None
    support_block_scope_hosting: bool | None = None

    name = "tir.HoistIfThenElse"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if self.variant not in (None, "basic"):
            raise LoweringError(f"HoistIfThenElse has the variants None and 'basic', not {self.variant!r}")
        options = with_own_options(context.get("tir.HoistIfThenElse"), self)
        threads = options.support_block_scope_hosting and self.variant is None
        return function.with_body(hoist_if_then_else(function.body, threads, self.variant is None))
