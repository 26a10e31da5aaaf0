"""The loops of a hybrid operation's body, as axes for a schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Var
from tilewright.ir.functor import Visitor, free_vars, post_order
from tilewright.support.recursion import recursion_room
from tilewright.tir.stmt import For, ForKind, IfThenElse, ProducerRealize, ProducerStore, Stmt

_TYPES = {
    ForKind.SERIAL: IterVar.DataPar,
    ForKind.PARALLEL: IterVar.Parallelized,
    ForKind.VECTORIZED: IterVar.Vectorized,
    ForKind.UNROLLED: IterVar.Unrolled,
}


@dataclass(eq=False)
class _Loop:
    """A loop that is being looked at: what depends on its variable, and what memory lives inside of it."""

    node: For
    varying: set[Var]
    own: set[object] = field(default_factory=set)
    conditions: int = 0
    """How many conditions on the loop's variable are around the statement that is being looked at."""
    is_ordered: bool = False


class _Collector(Visitor):
    """Finds loops, outer before inner, first before second."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Loop] = []
        self.around: list[_Loop] = []

    def visit_for(self, node: For) -> None:
        for loop in self.around:
            if _depends(node.extent, loop.varying):
                loop.varying.add(node.loop_var)
        made = _Loop(node, {node.loop_var})
        self.found.append(made)
        self.around.append(made)
        self.visit(node.body)
        self.around.pop()

    def visit_producer_realize(self, node: ProducerRealize) -> None:
        for loop in self.around:
            loop.own.add(node.producer)
        self.visit(node.body)

    def visit_if_then_else(self, node: IfThenElse) -> None:
        special = [loop for loop in self.around if _depends(node.condition, loop.varying)]
        for loop in special:
            loop.conditions += 1
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        for loop in special:
            loop.conditions -= 1

    def visit_producer_store(self, node: ProducerStore) -> None:
        for loop in self.around:
            if node.producer in loop.own or loop.conditions:
                continue
            if not any(_depends(index, loop.varying) for index in node.indices):
                loop.is_ordered = True


def _depends(expr: PrimExpr, varying: set[Var]) -> bool:
    """True if the value may differ between iterations: it uses such a variable, or reads memory."""
    if not varying.isdisjoint(free_vars(expr)):
        return True
    return any(isinstance(part, ProducerLoad) for part in post_order(expr))


def loop_axes(body: Stmt) -> list[IterVar]:
    """An axis for every loop. One whose iterations all write the same elements of outside memory is ordered: a schedule
    may split and unroll it, but not run its iterations at the same time."""
    collector = _Collector()
    with recursion_room():
        collector.visit(body)
    axes = []
    for loop in collector.found:
        kind = _TYPES[loop.node.kind]
        if loop.is_ordered and kind == IterVar.DataPar:
            kind = IterVar.Ordered
        axes.append(IterVar(Range(0, loop.node.extent), loop.node.loop_var, kind))
    return axes
