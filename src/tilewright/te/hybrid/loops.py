"""The loops of a hybrid operation's body: axes for a schedule, and the dependences between their iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Var
from tilewright.ir.functor import Visitor, free_vars, post_order
from tilewright.support.recursion import recursion_room
from tilewright.tir.stmt import For, ForKind, IfThenElse, ProducerRealize, ProducerStore, Stmt

PAIR_LIMIT = 4096
"""How many pairs of accesses one loop is searched for. Beyond that, the script says itself what it means."""

_TYPES = {
    ForKind.SERIAL: IterVar.DataPar,
    ForKind.PARALLEL: IterVar.Parallelized,
    ForKind.VECTORIZED: IterVar.Vectorized,
    ForKind.UNROLLED: IterVar.Unrolled,
}
_Access = tuple[object, tuple[PrimExpr, ...]]


@dataclass(eq=False)
class _Loop:
    """A loop, what depends on its variable, and how memory from outside it is used."""

    node: For
    varying: set[Var]
    """Variables whose values differ between iterations."""
    inside: set[Var] = field(default_factory=set)
    own: set[object] = field(default_factory=set)
    """Memory that lives inside the loop."""
    conditions: int = 0
    """How many conditions on the loop's variable are around the statement that is being looked at."""
    repeats_stores: bool = False
    stores: list[_Access] = field(default_factory=list)
    loads: list[_Access] = field(default_factory=list)


class _Collector(Visitor):
    """Finds loops, outer before inner, first before second."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Loop] = []
        self.around: list[_Loop] = []

    def visit_for(self, node: For) -> None:
        self.visit(node.extent)
        for loop in self.around:
            loop.inside.add(node.loop_var)
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
        self.visit(node.condition)
        special = [loop for loop in self.around if _depends(node.condition, loop.varying)]
        for loop in special:
            loop.conditions += 1
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        for loop in special:
            loop.conditions -= 1

    def visit_producer_store(self, node: ProducerStore) -> None:
        for child in (node.value, *node.indices):
            self.visit(child)
        for loop in self.around:
            if node.producer in loop.own:
                continue
            loop.stores.append((node.producer, node.indices))
            if not loop.conditions and not any(_depends(index, loop.varying) for index in node.indices):
                loop.repeats_stores = True

    def visit_prim_expr(self, node: PrimExpr) -> None:
        """Note what an expression reads; one that occurs in several places is visited once."""
        for part in post_order(node):
            if isinstance(part, ProducerLoad):
                for loop in self.around:
                    if part.producer not in loop.own:
                        loop.loads.append((part.producer, part.indices))


def _depends(expr: PrimExpr, varying: set[Var]) -> bool:
    """True if the value may differ between iterations: it uses such a variable, or reads memory."""
    if not varying.isdisjoint(free_vars(expr)):
        return True
    return any(isinstance(part, ProducerLoad) for part in post_order(expr))


def _collect(body: Stmt) -> list[_Loop]:
    collector = _Collector()
    with recursion_room():
        collector.visit(body)
    return collector.found


def _distances(loop: _Loop, roots: Mapping[Var, PrimExpr]) -> list[dict[Var, int]]:
    """How many iterations apart two uses of one element are, at least one of them a store, for each of these loop
    variables (with their extents); what is not known for certain is left out."""
    pairs = [
        (stored, used)
        for tensor, stored in loop.stores
        for other, used in (*loop.stores, *loop.loads)
        if tensor is other and stored is not used
    ]
    if len(pairs) > PAIR_LIMIT:
        return []
    analyzer = Analyzer()
    found = [_distance(stored, used, roots, loop.inside, analyzer) for stored, used in pairs]
    return [distance for distance in found if distance]


def _distance(
    stored: Sequence[PrimExpr],
    used: Sequence[PrimExpr],
    roots: Mapping[Var, PrimExpr],
    inside: set[Var],
    analyzer: Analyzer,
) -> dict[Var, int]:
    """The distance of two accesses; nothing where they do not meet, or where it is not known that they do."""
    distances: dict[Var, int] = {}
    for one, other in zip(stored, used, strict=True):
        apart = analyzer.simplify(operators.subtract(one, other))
        if not isinstance(apart, IntImm):
            return {}
        if apart.value == 0:
            continue
        variables = set(free_vars(one))
        here = [root for root in roots if root in variables]
        if not here and not variables.isdisjoint(inside):
            continue
        if len(here) != 1 or here[0] in set(free_vars(analyzer.simplify(operators.subtract(one, here[0])))):
            return {}
        extent = roots[here[0]]
        if isinstance(extent, IntImm) and abs(apart.value) >= extent.value:
            return {}
        distances[here[0]] = apart.value
    return distances


def loop_axes(body: Stmt) -> list[IterVar]:
    """An axis for every loop. One whose iterations all write the same elements of outside memory, or use what others
    wrote, is ordered: a schedule may split and unroll it, but not run its iterations at the same time."""
    axes = []
    for loop in _collect(body):
        node, kind = loop.node, _TYPES[loop.node.kind]
        if kind == IterVar.DataPar and (
            loop.repeats_stores or _distances(loop, {node.loop_var: node.extent})
        ):
            kind = IterVar.Ordered
        axes.append(IterVar(Range(0, node.extent), node.loop_var, kind))
    return axes


def nest_distances(outermost: For, roots: Mapping[Var, PrimExpr]) -> list[dict[Var, int]]:
    """The distances between iterations of loops that are directly nested, the outermost of which is
    given: iterations that far apart must keep their order."""
    return _distances(_collect(outermost)[0], roots)
