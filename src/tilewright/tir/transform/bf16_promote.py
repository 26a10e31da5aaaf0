"""Computes bfloat16 arithmetic in float32.

Operands are widened, and the result is rounded back: sums, products, comparisons and math functions. Loads, stores,
selections and conversions keep the type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import Call, PrimExpr
from tilewright.ir.functor import Mutator
from tilewright.ir.intrinsics import MATH_BINARY, MATH_UNARY
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import FLOAT32
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass

_MATH = frozenset(f"tir.{name}" for name in (*MATH_UNARY, *MATH_BINARY, "fma", "isnan", "isinf", "isfinite"))


def widened(value: PrimExpr) -> PrimExpr:
    """A bfloat16 value as float32; anything else as it is."""
    return operators.cast(FLOAT32.with_lanes(value.dtype.lanes), value) if value.dtype.is_bfloat16 else value


class _Promoter(Mutator):
    memoize = True

    def _arithmetic(self, node: Any) -> PrimExpr:
        made = node.map_children(self.visit)
        if not made.a.dtype.is_bfloat16:
            return made  # type: ignore[no-any-return]
        result: PrimExpr = made.rebuild(a=widened(made.a), b=widened(made.b))
        return operators.cast(made.dtype, result) if made.dtype.is_bfloat16 else result

    visit_add = visit_sub = visit_mul = visit_div = visit_min = visit_max = _arithmetic
    visit_eq = visit_ne = visit_lt = visit_le = visit_gt = visit_ge = _arithmetic

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        narrow = any(argument.dtype.is_bfloat16 for argument in made.args)
        if not narrow or getattr(made.op, "name", "") not in _MATH:
            return made
        wide = FLOAT32.with_lanes(made.dtype.lanes) if made.dtype.is_bfloat16 else made.dtype
        result = Call(wide, made.op, [widened(argument) for argument in made.args], made.span)
        return operators.cast(made.dtype, result)


def bf16_promote(stmt: Stmt) -> Stmt:
    """The statement with its bfloat16 arithmetic in float32."""
    return _Promoter().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BF16Promote(PrimFuncPass):
    """Computes bfloat16 arithmetic in float32."""

    name = "tir.BF16Promote"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(bf16_promote(function.body))
