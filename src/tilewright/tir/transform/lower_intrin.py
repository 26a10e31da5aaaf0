"""Lowers intrinsics and rounding divisions to what the function's target has.

An intrinsic goes through the first rule there is: the target's (attribute ``<kind>.FLowerIntrinsic`` of its operator,
set by ``register_intrin_lowering``), else the one for all targets (``default.FLowerIntrinsic``). A rule gives a
replacement, which is lowered in turn, or None or its argument to keep the call.

Divisions that round down become shifts and masks where the divisor is a power of two, truncating divisions where the
operands are known not to be negative, and a truncating division with a correction elsewhere.

Invariant from here on: no ``FloorDiv`` and no ``FloorMod`` is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import (
    Broadcast,
    Call,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    PrimExpr,
    Range,
    Select,
    is_const,
)
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt, For, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass
from tilewright.tir.transform.lib import intrin_rules
from tilewright.tir.transform.lib.scoped_rewriter import ScopedMutator


class _Lower(ScopedMutator):
    def __init__(self, target_kind: str) -> None:
        super().__init__()
        self.rules = (f"{target_kind}.FLowerIntrinsic", "default.FLowerIntrinsic")
        self.analyzer = Analyzer()

    def visit_for(self, node: For) -> Stmt:
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
        return node.map_children(self.visit)

    def visit_attr_stmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar) and node.attr_key in ("thread_extent", "virtual_thread"):
            zero = operators.const(0, node.value.dtype)
            self.analyzer.bind(node.node.var, Range.from_min_extent(zero, node.value))
        return node.map_children(self.visit)

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        if node.var.dtype.is_integral:
            self.analyzer.bind(node.var, node.value)
        return node.map_children(self.visit)

    def visit_let(self, node: Let) -> PrimExpr:
        if node.var.dtype.is_integral:
            self.analyzer.bind(node.var, node.value)
        return node.map_children(self.visit)

    def visit_call(self, node: Call) -> PrimExpr:
        if isinstance(node.op, Op):
            for rule in self.rules:
                lower = node.op.get_attr(rule)
                if lower is None:
                    continue
                made = lower(node)
                if made is None or made is node:
                    break
                return self.visit(made)  # type: ignore[no-any-return]
        return node.map_children(self.visit)

    def visit_floor_div(self, node: FloorDiv) -> PrimExpr:
        if _is_zero(node.b):
            # As at run time, a divisor of zero counts as one.
            return self.visit(node.a)  # type: ignore[no-any-return]
        if node.dtype.is_uint or self._never_negative(node.a, node.b):
            return operators.truncdiv(self.visit(node.a), self.visit(node.b))
        shift = _power_of_two(node.b)
        a, b = self.visit(node.a), self.visit(node.b)
        if shift is not None:
            return operators.right_shift(a, operators.const(shift, node.dtype))
        quotient, remainder = operators.truncdiv(a, b), operators.truncmod(a, b)
        one, zero = operators.const(1, node.dtype), operators.const(0, node.dtype)
        exact = self._rounds_down(node.b, b, remainder, zero)
        return Select(exact, quotient, operators.subtract(quotient, one))

    def visit_floor_mod(self, node: FloorMod) -> PrimExpr:
        if _is_zero(node.b):
            return operators.const(0, node.dtype)
        if node.dtype.is_uint or self._never_negative(node.a, node.b):
            return operators.truncmod(self.visit(node.a), self.visit(node.b))
        shift = _power_of_two(node.b)
        a, b = self.visit(node.a), self.visit(node.b)
        if shift is not None:
            return operators.bitwise_and(a, operators.const((1 << shift) - 1, node.dtype))
        remainder = operators.truncmod(a, b)
        exact = self._rounds_down(node.b, b, remainder, operators.const(0, node.dtype))
        return Select(exact, remainder, operators.add(remainder, b))

    def _rounds_down(self, original: PrimExpr, b: PrimExpr, remainder: PrimExpr, zero: PrimExpr) -> PrimExpr:
        """Where truncating rounds down already: the remainder is zero or has the divisor's sign."""
        not_below = operators.greater_equal(remainder, zero)
        if self._at_least(original, 0):
            return not_below
        not_above = operators.less_equal(remainder, zero)
        positive = operators.greater(b, zero)
        return operators.logical_or(
            operators.logical_and(positive, not_below),
            operators.logical_and(operators.logical_not(positive), not_above),
        )

    def _never_negative(self, a: PrimExpr, b: PrimExpr) -> bool:
        return self._at_least(b, 0) and self._at_least(a, 0)

    def _at_least(self, expr: PrimExpr, least: int) -> bool:
        return self.analyzer.const_int_bound(expr).min_value >= least


def _is_zero(divisor: PrimExpr) -> bool:
    """True for the constant zero, in one lane or many."""
    return is_const(divisor.value if isinstance(divisor, Broadcast) else divisor, 0)


def _power_of_two(divisor: PrimExpr) -> int | None:
    """The exponent, where the divisor is a constant power of two."""
    value = divisor.value if isinstance(divisor, Broadcast) else divisor
    if isinstance(value, IntImm) and value.value > 0 and value.value & (value.value - 1) == 0:
        return value.value.bit_length() - 1
    return None


def lower_intrinsics(function: PrimFunc, target_kind: str) -> PrimFunc:
    """The function with what this kind of target lacks expressed by what it has."""
    lower = _Lower(target_kind)
    lower.note_plain(function.body)
    return function.with_body(lower.visit(function.body))


@dataclass(frozen=True)
class LowerIntrin(PrimFuncPass):
    """Lower intrinsics and rounding divisions for each function's target."""

    name = "tir.LowerIntrin"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        target = function.attrs.get("target")
        return lower_intrinsics(function, target.kind.name if isinstance(target, Target) else "default")


__all__ = ["LowerIntrin", "intrin_rules", "lower_intrinsics"]
