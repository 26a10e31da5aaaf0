"""Substitution that folds constants: what a size or a loop variable makes constant is computed on the way."""

from __future__ import annotations

from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Not,
    Or,
    PrimExpr,
    Sub,
)
from tilewright.tir.functor import Substitute


class FoldingSubstitute(Substitute):
    """Replaces variables, and folds what becomes constant on the way."""

    def visit_add(self, node: Add) -> PrimExpr:
        return self._binary(node, operators.add)

    def visit_sub(self, node: Sub) -> PrimExpr:
        return self._binary(node, operators.subtract)

    def visit_mul(self, node: Mul) -> PrimExpr:
        return self._binary(node, operators.multiply)

    def visit_floor_div(self, node: FloorDiv) -> PrimExpr:
        return self._binary(node, operators.floordiv)

    def visit_floor_mod(self, node: FloorMod) -> PrimExpr:
        return self._binary(node, operators.floormod)

    def visit_min(self, node: Min) -> PrimExpr:
        return self._binary(node, operators.minimum)

    def visit_max(self, node: Max) -> PrimExpr:
        return self._binary(node, operators.maximum)

    def visit_and(self, node: And) -> PrimExpr:
        return self._binary(node, operators.logical_and)

    def visit_or(self, node: Or) -> PrimExpr:
        return self._binary(node, operators.logical_or)

    def visit_lt(self, node: LT) -> PrimExpr:
        return self._binary(node, operators.less)

    def visit_le(self, node: LE) -> PrimExpr:
        return self._binary(node, operators.less_equal)

    def visit_gt(self, node: GT) -> PrimExpr:
        return self._binary(node, operators.greater)

    def visit_ge(self, node: GE) -> PrimExpr:
        return self._binary(node, operators.greater_equal)

    def visit_eq(self, node: EQ) -> PrimExpr:
        return self._binary(node, operators.equal)

    def visit_not(self, node: Not) -> PrimExpr:
        a = self.visit(node.a)
        return node if a is node.a else operators.logical_not(a)

    def _binary(self, node: Any, make: Any) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node  # type: ignore[no-any-return]
        return make(a, b)  # type: ignore[no-any-return]
