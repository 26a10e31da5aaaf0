"""Regions between annotations, which AnnotateTarget marks and PartitionGraph extracts.

A call of the begin operator marks where a value enters a region, a call of the end operator where one leaves it. A
region is the set of expressions from the ends back to the begins, both included; regions that share an expression are
merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.analysis.feature import is_atomic
from tilewright.relay.expr import Call
from tilewright.support.errors import TilewrightError


@dataclass(eq=False)
class AnnotatedRegion:
    """One region. ``args`` are the calls of the begin operator, ``rets`` those of the end operator, in the order of
    evaluation; ``nodes`` are all expressions, both included."""

    nodes: dict[RelayExpr, None] = field(default_factory=dict)
    args: list[Call] = field(default_factory=list)
    rets: list[Call] = field(default_factory=list)
    target: str = "default"


class AnnotatedRegionSet:
    """The regions of an expression."""

    def __init__(self, expr: RelayExpr, region_begin_op: Op, region_end_op: Op) -> None:
        self.begin, self.end = region_begin_op, region_end_op
        self._of: dict[RelayExpr, AnnotatedRegion] = {}
        for found in post_order(expr):
            if isinstance(found, (RelayExpr,)):
                self._place(found)

    def _place(self, expr: Any) -> None:
        """Put an expression, whose parts are placed, into its region."""
        if isinstance(expr, Call) and expr.op is self.begin:
            region = AnnotatedRegion(target=_compiler(expr))
            self._of[expr] = region
            region.nodes[expr] = None
            region.args.append(expr)
            return
        below: list[AnnotatedRegion] = []
        for child in expr.children():
            inside = self._of.get(child)
            leaves = isinstance(child, Call) and child.op is self.end
            if inside is not None and not leaves and inside not in below:
                below.append(inside)
        if not below:
            if isinstance(expr, Call) and expr.op is self.end:
                self._begin_without_input(expr)
            return
        region = below[0]
        for other in below[1:]:
            region = self._merge(region, other)
        self._of[expr] = region
        region.nodes[expr] = None
        if isinstance(expr, Call) and expr.op is self.end:
            region.rets.append(expr)

    def _begin_without_input(self, end: Call) -> None:
        """A region into which nothing enters: all that the end's value is made of."""
        region = AnnotatedRegion(target=_compiler(end))
        for found in post_order(end):
            if isinstance(found, RelayExpr) and not is_atomic(found) and found not in self._of:
                self._of[found] = region
                region.nodes[found] = None
        region.rets.append(end)

    def _merge(self, into: AnnotatedRegion, other: AnnotatedRegion) -> AnnotatedRegion:
        """One region of two; the smaller one moves, so that all merges together are near-linear."""
        if len(into.nodes) < len(other.nodes):
            into, other = other, into
        if into.target != other.target:
            raise TilewrightError(
                f"a region for {into.target} and one for {other.target} meet without an annotation between them"
            )
        for moved in other.nodes:
            self._of[moved] = into
        into.nodes.update(other.nodes)
        into.args += other.args
        into.rets += other.rets
        return into

    @property
    def regions(self) -> list[AnnotatedRegion]:
        """All regions, in the order in which an evaluation meets them."""
        return list(dict.fromkeys(self._of.values()))

    def __len__(self) -> int:
        return len(self.regions)

    def __iter__(self) -> Any:
        return iter(self.regions)

    def get_region(self, expr: RelayExpr) -> AnnotatedRegion | None:
        """The region that an expression belongs to."""
        return self._of.get(expr)

    def merge_regions(self, into: AnnotatedRegion, other: AnnotatedRegion) -> AnnotatedRegion:
        """Make one region of two of the same target."""
        return into if into is other else self._merge(into, other)


def _compiler(call: Call) -> str:
    return str(getattr(call.attrs, "compiler", "default"))
