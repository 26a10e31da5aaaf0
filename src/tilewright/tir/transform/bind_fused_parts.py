"""Computes the parts of a fused parallel loop once an iteration.

The values of loops that were fused are quotients and remainders of the fused variable. Where an extent is dynamic, each
is a division by a number that LLVM cannot tell from zero, so it stays wherever it is used, under the condition of every
single load, rather than in front of the inner loops. Inside the loop no factor of its extent is zero: this pass binds
every quotient and remainder by such a factor to a variable at the start of the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Var
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.function import PrimFunc
from tilewright.tir.functor import Substitute, statements_in
from tilewright.tir.stmt import For, ForKind, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator


def _factors(extent: PrimExpr) -> list[PrimExpr]:
    """The factors of a product that are not constant, and their products from the innermost loop outwards."""
    factors: list[PrimExpr] = []
    stack = [extent]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Mul):
            stack += [expr.b, expr.a]
            factors.append(expr)
        elif not isinstance(expr, IntImm):
            factors.append(expr)
    return factors


class _Bind(Substitute):
    """Replaces quotients and remainders of a loop's variable, the innermost first, by variables."""

    def __init__(self, loop: For) -> None:
        super().__init__({})
        self.loop_var = loop.loop_var
        self.factors = _factors(loop.extent)
        self.bound: list[tuple[Var, PrimExpr]] = []
        self.parts: set[Var] = {loop.loop_var}

    def visit_floor_div(self, node: FloorDiv) -> PrimExpr:
        return self._part(node)

    def visit_floor_mod(self, node: FloorMod) -> PrimExpr:
        return self._part(node)

    def _part(self, node: Any) -> PrimExpr:
        made = node.map_children(self.visit)
        if made.a not in self.parts or not any(expr_deep_equal(made.b, factor) for factor in self.factors):
            return made  # type: ignore[no-any-return]
        for variable, value in self.bound:
            if expr_deep_equal(value, made):
                return variable
        variable = Var(f"{self.loop_var.name}_part", made.dtype)
        self.bound.append((variable, made))
        self.parts.add(variable)
        return variable


class _Loops(StmtMutator):
    """Binds the parts of every parallel loop of dynamic extent."""

    def visit_for(self, node: For) -> Stmt:
        if node.kind != ForKind.PARALLEL or not _factors(node.extent):
            return node.map_children(self.visit)
        bind = _Bind(node)
        body: Stmt = bind.visit(node.body)
        for variable, value in reversed(bind.bound):
            body = LetStmt(variable, value, body)
        return node.replace(body=body) if bind.bound else node


@dataclass(frozen=True)
class BindFusedParts(PrimFuncPass):
    """Binds the quotients and remainders of fused parallel loops of dynamic extent to variables."""

    name = "tir.BindFusedParts"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        """Rewrite one function."""
        if not any(
            isinstance(found, For) and found.kind == ForKind.PARALLEL
            for found in statements_in(function.body)
        ):
            return function
        return function.with_body(_Loops().visit(function.body))
