"""MergeCompilerRegions: merges neighbouring regions of one target.

A region and one that consumes its result are merged unless the result also reaches it through something outside both:
the merged region would then depend on itself. Regions for "default" are merged like others, as in TVM. Not merged are
regions of which one is in another block: a let's value, a branch or a function. A merged region
is called where its first result is needed, and what is bound in the block of another is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.adt import Clause
from tilewright.relay.analysis.annotated_regions import AnnotatedRegion, AnnotatedRegionSet
from tilewright.relay.expr import Call, If, Let
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.node import Node

SHARED = -1
"""The block of what several blocks use."""


def _blocks(body: RelayExpr) -> dict[Node, int]:
    """The number of the block that each node is evaluated in."""
    found: dict[Node, int] = {}
    roots: list[Node] = [body]
    for number, root in enumerate(roots):  # more are found on the way
        pending = [root]
        while pending:
            node = pending.pop()
            known = found.get(node)
            if known in (number, SHARED):
                continue
            found[node] = number if known is None else SHARED
            inner = _inner_blocks(node)
            if known is None:
                roots += inner
            pending += [child for child in node.children() if not any(child is one for one in inner)]
    return found


def _inner_blocks(node: Node) -> list[Node]:
    """What is evaluated apart from the rest of a node."""
    if isinstance(node, Let):
        return [node.value, node.body]
    if isinstance(node, If):
        return [node.true_branch, node.false_branch]
    if isinstance(node, Function):
        return [node.body]
    return [node.rhs] if isinstance(node, Clause) else []


@dataclass(eq=False)
class _Unit:
    """A region, or a node outside all regions; merged ones point to what they became."""

    region: AnnotatedRegion | None
    last: int
    """The greatest position, in the order of evaluation, of what is in it."""
    first: int
    block: int = 0
    """The block that it is in, or ``SHARED``."""
    before: dict[_Unit, None] = field(default_factory=dict)
    """Units whose results this one takes."""
    merged: _Unit | None = None

    def find(self) -> _Unit:
        """The merged region that a region belongs to."""
        found = self
        while found.merged is not None:
            found = found.merged
        return found


class _Merger:
    def __init__(self, func: Function) -> None:
        self.begin, self.end = Op.get("annotation.compiler_begin"), Op.get("annotation.compiler_end")
        self.regions = AnnotatedRegionSet(func.body, self.begin, self.end)
        self.units: dict[Any, _Unit] = {}
        self.of: dict[Node, _Unit] = {}
        self.blocks = _blocks(func.body)
        order = post_order(func.body)
        for position, node in enumerate(order):
            self._place(node, position)
        for node in order:
            self._connect(node)

    def _place(self, node: Any, position: int) -> None:
        region = self.regions.get_region(node) if isinstance(node, RelayExpr) else None
        key = region if region is not None else node
        unit = self.units.get(key)
        if unit is None:
            unit = self.units[key] = _Unit(region, position, position, self.blocks[node])
        unit.last = position
        if self.blocks[node] != unit.block and node.children():
            unit.block = SHARED
        self.of[node] = unit

    def _connect(self, node: Node) -> None:
        unit = self.of[node]
        for child in node.children():
            other = self.of[child]
            if other is not unit and child.children():
                unit.before[other] = None

    def run(self) -> None:
        """Merge each region with those before it, in the order in which they are complete."""
        for unit in sorted(self.units.values(), key=lambda one: one.last):
            if unit.region is None:
                continue
            for begin in list(unit.region.args):
                source = self.of[begin.args[0]].find()
                current = unit.find()
                if source is not current and self._mergeable(source, current):
                    self._merge(source, current)

    def _mergeable(self, source: _Unit, taker: _Unit) -> bool:
        same = (
            source.block == taker.block != SHARED
            and source.region is not None
            and taker.region is not None
            and source.region.target == taker.region.target
        )
        return same and not self._detour(source, taker)

    @staticmethod
    def _detour(source: _Unit, taker: _Unit) -> bool:
        """True if a way from the source to the taker goes through another unit."""
        pending = [one.find() for one in taker.before]
        pending = [one for one in pending if one is not source and one is not taker]
        seen: set[_Unit] = set(pending)
        while pending:
            current = pending.pop()
            if current.last < source.first:
                continue
            for one in current.before:
                above = one.find()
                if above is source:
                    return True
                if above not in seen and above is not taker:
                    seen.add(above)
                    pending.append(above)
        return False

    def _merge(self, source: _Unit, taker: _Unit) -> None:
        assert source.region is not None and taker.region is not None
        made = _Unit(
            self.regions.merge_regions(source.region, taker.region),
            max(source.last, taker.last),
            min(source.first, taker.first),
            source.block,
        )
        source.merged = taker.merged = made
        for one in (*source.before, *taker.before):
            if one.find() is not made:
                made.before[one.find()] = None


class _Rebuild(ExprMutator):
    """Without the marks that stand within a merged region."""

    def __init__(self, merger: _Merger) -> None:
        super().__init__()
        self.merger = merger

    def visit_call(self, call: Call) -> RelayExpr:
        regions = self.merger.regions
        if call.op is self.merger.begin:
            inner = call.args[0]
            if isinstance(inner, Call) and inner.op is self.merger.end:
                if regions.get_region(call) is regions.get_region(inner):
                    return self.visit(inner.args[0])  # type: ignore[no-any-return]
        return call.map_children(self.visit)


@dataclass
class MergeCompilerRegions(FunctionPass):
    """Merge neighbouring regions."""

    name = "MergeCompilerRegions"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Merge within one function."""
        merger = _Merger(func)
        merger.run()
        body = _Rebuild(merger).visit(func.body)
        return func if body is func.body else func.replace(body=body)
