"""Guards for reads that vector code would make although the program does not ask for them.

A vector evaluates both values of a ``Select`` in every lane. A read that may fall outside of its buffer gets the
condition as its predicate, so that only the lanes that ask for it read memory. Reads that need no guard stay plain,
because a plain vector load is the fastest there is: those that are shown to be inside whatever the condition says, and
those that happen anyway.
"""

from __future__ import annotations

from functools import cached_property

from tilewright.ir import operators
from tilewright.ir.expr import Load, PrimExpr, Select, Var
from tilewright.ir.functor import Mutator, post_order
from tilewright.tir.analysis.certain_reads import is_among, reads_anyway
from tilewright.tir.analysis.read_bounds import ReadVisitor, Size
from tilewright.tir.stmt import Stmt


class SpeculatedReads:
    """The reads of a program that a ``Select`` would make in lanes that do not ask for them."""

    def __init__(self, body: Stmt, sizes: dict[Var, Size]) -> None:
        self.body = body
        self.sizes = sizes

    @cached_property
    def inside(self) -> frozenset[int]:
        """The ids of the reads below a ``Select`` that are shown to be inside wherever they occur."""
        wanted = {
            id(read)
            for select in post_order(self.body)
            if isinstance(select, Select)
            for arm in (select.true_value, select.false_value)
            for read in post_order(arm)
            if isinstance(read, Load)
        }
        outside: set[int] = set()

        def look(visitor: ReadVisitor, read: Load) -> None:
            if id(read) in wanted and id(read) not in outside and not visitor.is_inside(read):
                outside.add(id(read))

        ReadVisitor(self.sizes, look).visit(self.body)
        return frozenset(wanted - outside)

    def guarded(self, node: Select) -> Select:
        """The selection with a predicate on each read that needs one."""
        arms = (node.true_value, node.false_value)
        if not any(isinstance(part, Load) for arm in arms for part in post_order(arm)):
            return node
        anyway = reads_anyway(node)
        opposite = operators.logical_not(node.condition)
        yes = _Guard(node.condition, anyway, self.inside).visit(node.true_value)
        no = _Guard(opposite, anyway, self.inside).visit(node.false_value)
        return Select(node.condition, yes, no, node.span)


class _Guard(Mutator):
    """Adds a condition to the predicates of the reads that need it."""

    memoize = True

    def __init__(self, condition: PrimExpr, anyway: list[Load], inside: frozenset[int]) -> None:
        super().__init__()
        self.condition = condition
        self.anyway = anyway
        self.inside = inside

    def visit_load(self, node: Load) -> PrimExpr:
        if id(node) in self.inside or node.dtype.lanes > 1 or is_among(node, self.anyway):
            return node
        made: Load = node.map_children(self.visit)
        return made.replace(predicate=operators.logical_and(made.predicate, self.condition))
