"""Bound inference: the range of every axis of a schedule.

Stages are processed last to first. An output covers its domain. Any other stage covers what its consumers need at the
place where it is computed: the axes outside that place are fixed, those inside take all their values, and the region
read follows by evaluating the consumers' indices on those sets. Memory shared by several threads holds what all of them
need.
"""

from __future__ import annotations

from tilewright.arith import Analyzer, IntervalSet, relax, union_sets
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, Range, Var, is_const
from tilewright.ir.transform import PassContext
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import with_recursion_room
from tilewright.te.operation import PlaceholderOp
from tilewright.te.schedule.dataflow import readers_of
from tilewright.te.schedule.reads import Loops, TensorDomains, note_reads, output_domain
from tilewright.te.schedule.reads_inside import check_reads
from tilewright.te.schedule.relations import (
    Ranges,
    Sets,
    Values,
    pass_down_ranges,
    pass_up_sets,
    pass_up_values,
)
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Operation
from tilewright.tir.storage_rank import (
    StorageRank,
    default_storage_rank,
    is_shared_by,
    scope_name,
    storage_rank,
    thread_rank,
)


class BoundInference:
    """The state of one inference; ``ranges`` is the result."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.stages = [stage for stage in schedule.stages if stage.attach_type != AttachType.INLINED_ALREADY]
        self.stage_of: dict[Operation, Stage] = {stage.op: stage for stage in self.stages}
        self.readers = readers_of([stage.op for stage in self.stages])
        self.bound_threads: dict[IterVar, IterVar] = {
            axis: attributes.bind_thread
            for stage in self.stages
            for axis, attributes in stage.axis_attributes.items()
            if attributes.bind_thread is not None
        }
        self.paths: dict[Operation, list[IterVar]] = {stage.op: attach_path(stage) for stage in self.stages}
        self.ranges: Ranges = {}
        self.analyzer = Analyzer()
        # With bound checks, the program should run up to the access that fails.
        self.checked_later = bool(PassContext.current().get("tir.instrument_bound_checkers"))

    def run(self) -> Ranges:
        """The ranges of all axes."""
        for stage in reversed(self.stages):
            if not isinstance(stage.op, PlaceholderOp):
                self.infer_roots(stage)
                if not self.checked_later:
                    check_reads(stage.op, self.ranges)
                self.pass_down(stage)
        for axis, thread in self.bound_threads.items():
            self.ranges.setdefault(thread, self.ranges[axis])
        return self.ranges

    def pass_down(self, stage: Stage) -> None:
        """The ranges of the axes that come from the roots, and of the threads that they are bound to."""
        kept = frozenset(
            axis for axis, attributes in stage.axis_attributes.items() if attributes.tensor_intrin is not None
        )
        pass_down_ranges(stage.relations, self.ranges, self.analyzer, _inside(stage, kept))
        for axis, attributes in stage.axis_attributes.items():
            thread = attributes.bind_thread
            if thread is not None and axis in self.ranges:
                self.bind_thread(stage, axis, thread)
        for thread in stage.env_thread_axes:
            if thread.dom is None:
                stage.fail("env_threads", thread, "the thread axis needs a range")
            self.ranges[thread] = thread.dom
        for axis in stage.leaf_iter_vars:
            if axis in self.ranges:
                self.analyzer.bind(axis.var, self.ranges[axis], allow_override=True)

    def bind_thread(self, stage: Stage, axis: IterVar, thread: IterVar) -> None:
        """A thread axis has the extent of the axis bound to it; all that are bound to one must agree."""
        found = self.ranges[axis]
        known = self.ranges.get(thread, thread.dom)
        private = not is_shared_by(self.storage_rank(stage), thread.thread_tag)
        if known is not None and is_const(found.extent, 1) and private:
            # Each thread has this memory to itself, and computes its own element of it.
            self.ranges[thread] = known
            return
        if known is not None and not self.analyzer.can_prove_equal(known.extent, found.extent):
            stage.fail(
                "bind",
                axis,
                f"its extent {found.extent} is not the extent {known.extent} that {thread.thread_tag} has already",
            )
        self.ranges[thread] = Range.from_min_extent(operators.const(0, found.extent.dtype), found.extent)
        self.analyzer.bind(thread.var, self.ranges[thread], allow_override=True)

    def infer_roots(self, stage: Stage) -> None:
        """The ranges of the root axes of one stage."""
        operation = stage.op
        if stage.is_output:
            if stage.attach_spec().attach_type == AttachType.SCOPE:
                raise ScheduleError(f"compute_at on stage {stage.label}: an output is computed at the root")
            for axis in operation.root_iter_vars:
                assert axis.dom is not None
                self.ranges[axis] = axis.dom
            return
        domains: TensorDomains = {
            tensor: [[] for _ in range(max(len(tensor.shape), 1))] for tensor in operation.outputs
        }
        rank = self.storage_rank(stage)
        for reader in self._readers(operation):
            self.note_reader(stage, reader, rank, domains)
        for axis, found in output_domain(operation, domains).items():
            self.ranges[axis] = self.cover(axis, found)

    def cover(self, axis: IterVar, found: list[IntervalSet] | None) -> Range:
        """The range that covers all sets; the whole domain where one is not bounded or nothing is read."""
        assert axis.dom is not None
        if not found:
            return axis.dom
        whole = found[0] if len(found) == 1 else union_sets(found, self.analyzer)
        return whole.cover_range(axis.dom, self.analyzer)

    def _readers(self, operation: Operation) -> list[Operation]:
        found: dict[Operation, None] = {}
        for tensor in operation.outputs:
            for reader in self.readers.get(tensor, ()):
                found[reader] = None
        return list(found)

    def storage_rank(self, stage: Stage) -> StorageRank:
        """The rank of the memory that holds a stage's result."""
        if stage.scope:
            return storage_rank(stage.scope)
        innermost = -1
        for axis in self.paths[stage.op]:
            rank = thread_rank(self.thread_tag(axis))
            if rank is not None:
                innermost = max(innermost, rank)
        return default_storage_rank(innermost)

    def thread_tag(self, axis: IterVar) -> str:
        """The tag of the thread that an axis is or is bound to."""
        return self.bound_threads.get(axis, axis).thread_tag

    def takes_all_values(self, axis: IterVar, inside: bool, rank: StorageRank) -> bool:
        """True if memory of this rank must serve all iterations of the axis."""
        tag = self.thread_tag(axis)
        return inside if tag in ("", "pipeline") else is_shared_by(rank, tag)

    def note_reader(self, stage: Stage, reader: Operation, rank: StorageRank, domains: TensorDomains) -> None:
        """Add what one reader needs to the domains."""
        reader_stage = self.stage_of[reader]
        place = stage.attach_spec()
        attach = place.attach_ivar if place.is_placed else None
        at_place = attach is None
        sets: Sets = {}
        # From the innermost loop outwards: what is before the place is inside it. A stage at the root has
        # everything inside.
        inside = True
        for axis in reversed(reader_stage.leaf_iter_vars):
            if axis is attach:
                inside, at_place = False, True
            self.check_thread(stage, reader_stage, axis, inside, rank)
            sets[axis] = self.axis_set(axis, inside, rank)
        relaxed: dict[Var, IntervalSet] = {}
        for axis in self.paths[reader]:
            if axis is attach:
                inside, at_place = False, True
            self.check_thread(stage, reader_stage, axis, inside, rank)
            if self.takes_all_values(axis, inside, rank):
                whole = IntervalSet.from_range(self.ranges[axis])
                relaxed[axis.var] = whole
                if axis in self.bound_threads:
                    relaxed[self.bound_threads[axis].var] = whole
        for axis in reader.root_iter_vars:
            if axis.iter_type == IterVar.Opaque:
                sets.setdefault(axis, IntervalSet.from_range(self.ranges[axis]))
        if not at_place:
            assert attach is not None and place.attach_stage is not None
            where = f"{place.attach_stage.label} at axis {attach.var.name}"
            raise ScheduleError(
                f"compute_at on stage {stage.label}: its reader {reader_stage.label} is not inside {where}"
            )
        leaves = {axis: sets[axis] for axis in reader_stage.leaf_iter_vars}
        pass_up_sets(reader_stage.relations, self.ranges, sets, self.analyzer)
        # Simplification writes an axis of one value in terms of the loops around it.
        bound: dict[Var, IntervalSet] = dict(relaxed)
        for axis in reader.root_iter_vars:
            covered = sets[axis]
            bound[axis.var] = relax(covered, relaxed, self.analyzer) if relaxed else covered
        note_reads(reader, self.analyzer, bound, domains, self.loops_of(reader_stage, leaves, relaxed))

    def loops_of(self, reader: Stage, leaves: Sets, relaxed: dict[Var, IntervalSet]) -> Loops | None:
        """A reader's axes in terms of its loops, where some were split or fused."""
        if not reader.relations:
            return None
        values: Values = {axis: axis.var for axis in leaves}
        pass_up_values(reader.relations, self.ranges, values, allow_missing=True)
        roots = [axis for axis in reader.op.root_iter_vars if axis in values and values[axis] is not axis.var]
        bound = {
            axis.var: relax(covered, relaxed, self.analyzer) if relaxed else covered
            for axis, covered in leaves.items()
        }
        return Loops({axis.var: values[axis] for axis in roots}, {**bound, **relaxed})

    def check_thread(
        self, stage: Stage, reader: Stage, axis: IterVar, inside: bool, rank: StorageRank
    ) -> None:
        """Refuse memory of one thread (or block) for a stage that is computed before that thread runs."""
        thread = self.bound_threads.get(axis, axis)
        if not inside or thread_rank(thread.thread_tag) is None or is_const(self.ranges[axis].extent, 1):
            return
        own = [*stage.env_thread_axes, *(one.bind_thread for one in stage.axis_attributes.values())]
        # A thread that already runs around the place is the same one inside it.
        for around, owner in attach_path_with_stages(stage):
            own += [self.bound_threads.get(around, around), *owner.env_thread_axes]
        if not is_shared_by(rank, thread.thread_tag) and not any(thread is one for one in own):
            stage.fail(
                "set_scope",
                axis,
                f"its memory ({stage.scope or scope_name(rank)}) is not shared by {thread.thread_tag}, which stage "
                f"{reader.label} has inside the place where it is computed; compute it at that axis",
            )

    def axis_set(self, axis: IterVar, inside: bool, rank: StorageRank) -> IntervalSet:
        """The values of a reader's loop that one computation of the stage serves."""
        whole = self.ranges[axis]
        if is_const(whole.extent, 1):
            return IntervalSet.single_point(whole.min)
        if self.takes_all_values(axis, inside, rank):
            return IntervalSet.from_range(whole)
        return IntervalSet.single_point(self.bound_threads.get(axis, axis).var)


def _inside(stage: Stage, kept: frozenset[IterVar]) -> frozenset[IterVar]:
    """The leaves from a tensorised axis inwards: their extents are the intrinsic's."""
    for position, axis in enumerate(stage.leaf_iter_vars):
        if axis in kept:
            return frozenset(stage.leaf_iter_vars[position:])
    return kept


def attach_path(stage: Stage) -> list[IterVar]:
    """The loops around the place where a stage is computed, innermost first."""
    return [axis for axis, _ in attach_path_with_stages(stage)]


def attach_path_with_stages(stage: Stage) -> list[tuple[IterVar, Stage]]:
    """The loops around the place where a stage is computed, innermost first, each with the stage that it
    belongs to."""
    path: list[tuple[IterVar, Stage]] = []
    place = stage.attach_spec()
    while place.is_placed and place.attach_stage is not None:
        parent = place.attach_stage
        found = False
        for axis in reversed(parent.leaf_iter_vars):
            found = found or axis is place.attach_ivar
            if found:
                path.append((axis, parent))
        if not found:
            name = place.attach_ivar.var.name if place.attach_ivar is not None else "?"
            raise ScheduleError(
                f"compute_at on stage {stage.label}, axis {name}: it is not an axis left of {parent.label}"
            )
        place = parent.attach_spec()
    return path


def create_attach_path(schedule: Schedule) -> dict[Operation, list[IterVar]]:
    """For each operation the loops around the place where it is computed, innermost first."""
    return {stage.op: attach_path(stage) for stage in schedule.stages}


@with_recursion_room
def infer_bound(schedule: Schedule) -> Ranges:
    """The range of every axis of a normalised schedule."""
    return BoundInference(schedule).run()
