"""Bounds and statement of a hybrid operation: its body, with the schedule applied to its loops.

Perfectly nested loops form a band. A schedule may split, fuse and reorder the loops of a band; the loops of different
bands keep their places.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Var, is_const
from tilewright.ir.functor import Mutator, free_vars, post_order
from tilewright.te.extern import ExternOp
from tilewright.te.hybrid.definition import with_defined_memory
from tilewright.te.hybrid.loops import nest_distances
from tilewright.te.hybrid.operation import HybridOp, replace_tensors_in
from tilewright.te.schedule import whole_ops
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import guard, make_loop_nest, wrap
from tilewright.te.schedule.lowering import PROVIDE, REALIZE
from tilewright.te.schedule.reads import OUTPUTS, READS
from tilewright.te.schedule.relations import (
    Fuse,
    Singleton,
    Split,
    Values,
    bound_predicates,
    pass_down_marks,
    pass_up_values,
)
from tilewright.te.schedule.stage import Stage
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import For, IfThenElse, Stmt

_ = whole_ops  # its rules for statements on whole tensors hold for hybrid operations too


@dataclass(eq=False)
class _Band:
    """Loops directly nested, and the leaves that the schedule made of them, outermost first."""

    number: int
    roots: list[IterVar]
    leaves: list[IterVar]

    @property
    def is_changed(self) -> bool:
        """True if the schedule did more than annotate the loops."""
        return [id(axis) for axis in self.leaves] != [id(axis) for axis in self.roots]


class _Apply(Mutator):
    """Rewrites the loops of a hybrid operation's body."""

    def __init__(self, stage: Stage, context: LoweringContext) -> None:
        super().__init__()
        operation = stage.op
        assert isinstance(operation, HybridOp)
        self.stage = stage
        self.context = context
        self.operation = operation
        body = with_defined_memory(operation.body, operation.output_placeholders)
        outputs = dict(zip(operation.output_placeholders, operation.outputs, strict=True))
        self.body = replace_tensors_in(body, outputs)
        self.axis_of: dict[Var, IterVar] = {axis.var: axis for axis in operation.axes}
        self.loops = {
            part.loop_var: part
            for part in post_order(self.body)
            if isinstance(part, For) and part.loop_var in self.axis_of
        }
        # What the body says now counts: an extent may read a tensor that the schedule has replaced.
        self.ranges = dict(context.ranges)
        for axis in operation.axes:
            self.ranges[axis] = Range(0, self.loops[axis.var].extent)
        self.bands = self._find_bands()
        self.values: Values = {}
        self.nest = make_loop_nest(stage, self.ranges, self.values, keep_trivial=context.keep_trivial)

    def build(self) -> Stmt:
        """The statement of the stage."""
        self._refuse()
        pass_up_values(self.stage.relations, self.ranges, self.values)
        body: Stmt = self.visit(self.body)
        body = wrap(self.nest[: self._singletons()], body)
        mapping: dict[Var, PrimExpr] = {}
        for axis in self.operation.axes:
            if self.values[axis] is not axis.var:
                value = substitute(self.values[axis], mapping)
                mapping[axis.var] = self.context.analyzer.simplify(value)
        return substitute(body, mapping)

    # -- what a schedule may do -----------------------------------------------------------------------------------

    def _find_bands(self) -> list[_Band]:
        """The bands, in the order of the text, with their leaves."""
        bands: list[_Band] = []
        band_of: dict[IterVar, _Band] = {}
        for axis in self.operation.axes:
            if axis in band_of:
                continue
            band = _Band(len(bands), [], [])
            bands.append(band)
            loop: Stmt = self.loops[axis.var]
            while isinstance(loop, For) and loop.loop_var in self.axis_of:
                root = self.axis_of[loop.loop_var]
                band.roots.append(root)
                band_of[root] = band
                loop = loop.body
        for relation in self.stage.relations:
            if isinstance(relation, Split):
                band_of[relation.outer] = band_of[relation.inner] = self._band(
                    band_of, "split", relation.parent
                )
            elif isinstance(relation, Fuse):
                band = self._band(band_of, "fuse", relation.outer)
                if self._band(band_of, "fuse", relation.inner) is not band:
                    self.stage.fail(
                        "fuse",
                        relation.inner,
                        f"its loop is not directly inside the loop {relation.outer.var.name}",
                    )
                band_of[relation.fused] = band
        last = -1
        for leaf in self.stage.leaf_iter_vars[self._singletons() :]:
            band = self._band(band_of, "reorder", leaf)
            if band.number < last:
                self.stage.fail(
                    "reorder", leaf, "only loops directly inside one another can change their order"
                )
            last = band.number
            band.leaves.append(leaf)
        return bands

    def _band(self, band_of: dict[IterVar, _Band], primitive: str, axis: IterVar) -> _Band:
        if axis not in band_of:
            self.stage.fail(primitive, axis, "it is not one of the script's loops")
        return band_of[axis]

    def _singletons(self) -> int:
        """How many axes of one iteration the schedule put around the whole script."""
        made = {relation.iter for relation in self.stage.relations if isinstance(relation, Singleton)}
        count = 0
        for leaf in self.stage.leaf_iter_vars:
            if leaf not in made:
                break
            count += 1
        return count

    def _refuse(self) -> None:
        """Raises the error for a step that is not possible on a script."""
        stage = self.stage
        if stage.store_predicate is not None:
            stage.fail("set_store_predicate", None, "a hybrid script defines its own stores")
        for axis, attributes in stage.axis_attributes.items():
            if attributes.tensor_intrin is not None:
                stage.fail("tensorize", axis, "a hybrid script has no tensor expression to replace")
            if attributes.align_factor:
                stage.fail(
                    "storage_align", axis, "the loops of a hybrid script are not dimensions of its output"
                )
        for leaf in stage.leaf_iter_vars:
            is_bound = stage.attributes(leaf).bind_thread is not None and not is_const(
                self.ranges[leaf].extent, 1
            )
            if is_bound and leaf.iter_type == IterVar.Ordered:
                stage.fail("bind", leaf, "its iterations depend on one another")
            for attached in self.context.attached.get(leaf, []):
                attached.fail("compute_at", leaf, f"{stage.label} is a hybrid script: what it reads is whole")
        for band in self.bands:
            if band.is_changed:
                self._check_extents(band)
                self._check_order(band)

    def _check_extents(self, band: _Band) -> None:
        """Extents must be known before the loops that use them."""
        for root in band.roots:
            if any(isinstance(part, ProducerLoad) for part in post_order(self.ranges[root].extent)):
                self.stage.fail(
                    "split", root, "its extent is read from memory; loops around it must stay as they are"
                )
        inside: set[Var] = set()
        for leaf in reversed(band.leaves):
            inside |= {root.var for root in band.roots if self._comes_from(leaf, root)}
            for variable in free_vars(self.ranges[leaf].extent):
                if variable in inside:
                    self.stage.fail("reorder", leaf, f"its extent depends on {variable.name}")

    def _check_order(self, band: _Band) -> None:
        """Iterations that use one element of memory must keep their order."""
        extents = {root.var: self.ranges[root].extent for root in band.roots}
        natural = self._natural_order(band)
        for distances in nest_distances(self.loops[band.roots[0].var], extents):
            roots = [root for root in band.roots if root.var in distances]
            marked = [leaf for leaf in band.leaves if any(self._comes_from(leaf, root) for root in roots)]
            # Steps that all go forwards stay in order as long as the parts of each loop do.
            one_way = len({distance > 0 for distance in distances.values()}) == 1
            groups = [[root] for root in roots] if one_way else [roots]
            for group in groups:
                places = [
                    natural.get(leaf, -1)
                    for leaf in marked
                    if any(self._comes_from(leaf, root) for root in group)
                ]
                if places != sorted(places) or -1 in places:
                    self.stage.fail(
                        "reorder",
                        marked[0],
                        f"iterations of {', '.join(root.var.name for root in roots)} use what others wrote",
                    )

    def _natural_order(self, band: _Band) -> dict[IterVar, int]:
        """The places that the leaves of a band have if nothing is reordered; a leaf fused of loops that were not
        neighbours then has none."""
        order = list(band.roots)
        for relation in self._relations(band):
            place = next((at for at, axis in enumerate(order) if axis is _first(relation)), None)
            if place is None:
                continue
            if isinstance(relation, Split):
                order[place : place + 1] = [relation.outer, relation.inner]
            elif place + 1 < len(order) and order[place + 1] is relation.inner:
                order[place : place + 2] = [relation.fused]
        return {axis: place for place, axis in enumerate(order)}

    def _comes_from(self, leaf: IterVar, root: IterVar) -> bool:
        marks = {root: 1}
        pass_down_marks(self.stage.relations, marks)
        return bool(marks.get(leaf))

    # -- loops ----------------------------------------------------------------------------------------------------

    def visit_for(self, node: For) -> Stmt:
        axis = self.axis_of.get(node.loop_var)
        band = next((band for band in self.bands if band.roots[0] is axis), None)
        if band is None:
            return node.map_children(self.visit)
        inner: Stmt = node
        for _ in band.roots:
            assert isinstance(inner, For)
            inner = inner.body
        return self._loops(band, self.visit(inner))

    def _loops(self, band: _Band, body: Stmt) -> Stmt:
        """The loops of a band around its body. A condition is placed as far outside as its variables allow."""
        guards: dict[int, list[PrimExpr]] = {}
        for predicate in self._predicates(band):
            used = set(free_vars(predicate))
            depth = max(
                (place for place, leaf in enumerate(band.leaves) if self.values[leaf] in used), default=-1
            )
            guards.setdefault(depth, []).append(predicate)
        first = next(place for place, leaf in enumerate(self.stage.leaf_iter_vars) if leaf is band.leaves[0])
        for place in range(len(band.leaves) - 1, -1, -1):
            body = wrap([self.nest[first + place]], guard(guards.get(place, []), body))
        for condition in [*guards.get(-1, []), *self._empty_checks(band)]:
            body = IfThenElse(condition, body)
        return body

    def _relations(self, band: _Band) -> list[Split | Fuse]:
        return [
            relation
            for relation in self.stage.relations
            if isinstance(relation, (Split, Fuse))
            and any(
                self._comes_from(relation.outer, root) or self._comes_from(relation.inner, root)
                for root in band.roots
            )
        ]

    def _predicates(self, band: _Band) -> list[PrimExpr]:
        """The conditions that keep the loops inside the script's ranges."""
        return bound_predicates(
            self._relations(band),
            [],
            self.ranges,
            self.values,
            self.context.loop_sets,
            self.context.analyzer,
            check_domain=False,
        )

    def _empty_checks(self, band: _Band) -> list[PrimExpr]:
        """A script's range may be empty with an extent below zero; the product of two such must not make a loop."""
        analyzer = self.context.analyzer
        made = []
        for relation in self._relations(band):
            if isinstance(relation, Fuse):
                extents = [self.ranges[axis].extent for axis in (relation.outer, relation.inner)]
                if not any(analyzer.can_prove(operators.greater_equal(extent, 0)) for extent in extents):
                    made.append(operators.greater(extents[1], 0))
        return made


def _first(relation: Split | Fuse) -> IterVar:
    """The axis that a relation takes away, or the outer one of two."""
    return relation.parent if isinstance(relation, Split) else relation.outer


def _hybrid(stage: Stage, context: LoweringContext) -> Stmt:
    return _Apply(stage, context).build()


READS[HybridOp] = READS[ExternOp]
OUTPUTS[HybridOp] = OUTPUTS[ExternOp]
REALIZE[HybridOp] = REALIZE[ExternOp]
PROVIDE[HybridOp] = _hybrid
