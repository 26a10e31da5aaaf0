"""Turns a ``Select`` whose branches must not always be evaluated into ``if_then_else``.

``Select`` evaluates all its operands. A branch that reads memory or divides integers may only be safe under the
condition, so it gets the form that skips the other branch. A condition with several lanes decides for each lane and
stays a ``Select``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import (
    BufferLoad,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Mod,
    PrimExpr,
    ProducerLoad,
    Select,
)
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.transform import PassContext
from tilewright.support.node import Node
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass

_IF_THEN_ELSE = Op.register("tir.if_then_else")


def _is_unsafe(expr: PrimExpr) -> bool:
    """True if evaluating the expression where it is not asked for may fail."""
    waiting: list[Node] = [expr]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, (Load, BufferLoad, ProducerLoad)):
            return True
        if isinstance(found, (Div, Mod, FloorDiv, FloorMod)) and found.dtype.is_integral:
            if not (isinstance(found.b, IntImm) and found.b.value != 0):
                return True
        if isinstance(found, Call):
            if found.op is _IF_THEN_ELSE:
                # Its own condition already guards the branches.
                waiting.append(found.args[0])
                continue
            if found.effect > CallEffectKind.Pure:
                return True
        waiting.extend(found.children())
    return False


class _Rewriter(Mutator):
    memoize = True

    def visit_select(self, node: Select) -> PrimExpr:
        made: Select = node.map_children(self.visit)
        if made.condition.dtype.lanes == 1 and (_is_unsafe(made.true_value) or _is_unsafe(made.false_value)):
            return Call(made.dtype, _IF_THEN_ELSE, made.children(), made.span)
        return made


def rewrite_unsafe_select(stmt: Stmt) -> Stmt:
    """The statement with unsafe selections replaced."""
    return _Rewriter().visit(stmt)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RewriteUnsafeSelect(PrimFuncPass):
    """Turns selections that guard memory accesses and divisions into branches."""

    name = "tir.RewriteUnsafeSelect"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(rewrite_unsafe_select(function.body))
