"""Removes the rounding to bfloat16 between two float32 operations.

``float32(bfloat16(x))`` of a float32 ``x`` becomes ``x``: a chain of promoted operations keeps its intermediate values
in float32, which is faster and closer to the exact result.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import Cast, PrimExpr
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.support.dtype import FLOAT32
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass


class _Eliminator(Mutator):
    memoize = True

    def visit_cast(self, node: Cast) -> PrimExpr:
        made: Cast = node.map_children(self.visit)
        inner = made.value
        wide = FLOAT32.with_lanes(made.dtype.lanes)
        if (
            made.dtype is wide
            and isinstance(inner, Cast)
            and inner.dtype.is_bfloat16
            and inner.value.dtype is wide
        ):
            return inner.value
        return made


def bf16_cast_elimination(stmt: Stmt) -> Stmt:
    """The statement without roundings to bfloat16 between float32 operations."""
    return _Eliminator().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class BF16CastElimination(PrimFuncPass):
    """Drops conversions to bfloat16 and straight back."""

    name = "tir.BF16CastElimination"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(bf16_cast_elimination(function.body))
