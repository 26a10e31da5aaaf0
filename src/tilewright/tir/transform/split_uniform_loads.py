"""Turns vector loads whose index depends on a scalar choice into a choice between two loads.

Where a dimension may be one at run time, an operator that broadcasts reads ``a[Select(extent == 1, 0, i)]``. In a
vectorized loop that is a gather, although it is either one number in all lanes or consecutive ones. The condition does
not change from lane to lane, nor in the loop: after this pass each branch is a plain load, and LLVM takes the condition
out of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import Add, Call, Load, Mul, PrimExpr, Select, Sub
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass

MOST_CONDITIONS: Final = 2
"""Of one load; each doubles its code."""

_IF_THEN_ELSE = Op.register("tir.if_then_else")


def _uniform_choice(index: PrimExpr) -> Select | None:
    """A choice between vectors by one condition, in the sums and products that make an index."""
    waiting = [index]
    seen: set[int] = set()
    while waiting:
        expr = waiting.pop()
        if expr.dtype.lanes == 1 or id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Select) and expr.condition.dtype.lanes == 1:
            return expr
        if isinstance(expr, (Add, Sub, Mul)):
            waiting += [expr.a, expr.b]
    return None


class _Replace(Mutator):
    """Puts one branch in the place of every choice by the same condition."""

    memoize = True

    def __init__(self, condition: PrimExpr, holds: bool) -> None:
        super().__init__()
        self.condition = condition
        self.holds = holds

    def visit_select(self, node: Select) -> PrimExpr:
        if node.condition is not self.condition:
            return node.map_children(self.visit)
        return self.visit(node.true_value if self.holds else node.false_value)  # type: ignore[no-any-return]


def _split(load: Load, conditions: int) -> PrimExpr:
    """A load, or the choice between loads by so many conditions at most."""
    choice = _uniform_choice(load.index) if conditions else None
    if choice is None:
        return load
    loads = [
        _split(load.replace(index=_Replace(choice.condition, holds).visit(load.index)), conditions - 1)
        for holds in (True, False)
    ]
    return Call(load.dtype, _IF_THEN_ELSE, (choice.condition, *loads), load.span)


class _Split(Mutator):
    memoize = True

    def visit_load(self, node: Load) -> PrimExpr:
        return _split(node.map_children(self.visit), MOST_CONDITIONS)


@dataclass(frozen=True)
class SplitUniformLoads(PrimFuncPass):
    """Makes two loads of one whose index depends on a condition that is the same for all lanes."""

    name = "tir.SplitUniformLoads"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(_Split().visit(function.body))
