"""Schedules a group of stages that share rows: every row is read once and written once.

A team of threads computes a row. Elements that several stages read stay in the registers of the thread that loaded
them; reductions are combined across the team, so that every thread has the result. Rows that do not fit are read again
by each stage, from a cache if they are lucky.

Where one row does not fill whole vectors but the rows of a block do, the block copies all of them to shared memory, and
its results back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.ir.operators import equal
from tilewright.schedule.cpu.access import extent_of
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.schedule.gpu.row_plan import RowPlan, plan_rows
from tilewright.schedule.gpu.rows import Member, RowGroup
from tilewright.te.operation import ComputeOp, thread_axis
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor

UNROLLED_STEPS: Final = 32
"""Steps of a thread that are written out."""

LOADS_AHEAD: Final = 4
"""Steps of a long row that are written out, so that their loads are on their way at the same time."""


def schedule_rows(schedule: Schedule, group: RowGroup, machine: GpuMachine) -> None:
    """Schedules the root with all of its cone inside."""
    plan = plan_rows(group, machine)
    _RowSchedule(schedule, group, plan, machine).run()


class _RowSchedule:
    def __init__(self, schedule: Schedule, group: RowGroup, plan: RowPlan, machine: GpuMachine) -> None:
        self.schedule = schedule
        self.machine = machine
        self.group = group
        self.plan = plan
        first, second = ("threadIdx.y", "threadIdx.x") if plan.is_across else ("threadIdx.x", "threadIdx.y")
        self.team = thread_axis((0, plan.team), first)
        self.row_thread = thread_axis((0, plan.rows), second)
        self.block = thread_axis("blockIdx.x")
        self.root = group.root.materialized.stage
        """The stage that computes the root, which another one may copy."""
        self.copies: list[Stage] = []
        """The stages that copy rows to shared memory."""

    def run(self) -> None:
        """Schedules all stages."""
        if self.plan.is_copied:
            made = self.schedule.cache_write(list(self.root.op.outputs), "shared")
            self.root = self.schedule[made[0] if isinstance(made, list) else made]
        kept: list[Tensor] = []
        if self.plan.is_kept:
            kept += [self.stage_input(tensor, dims) for tensor, dims in self.group.staged.items()]
        for member in self.group.cone:
            if not member.materialized.is_reduction and member.length > 1:
                if self.plan.is_kept:
                    kept.append(self.keep(member))
                else:
                    member.materialized.stage.compute_inline()
        if self.plan.is_copied:
            self.copy_rows()
        root = self.root
        place = self.schedule_root()
        for tensor in kept:
            stage = self.schedule[tensor]
            stage.compute_at(root, place)
            self.finish_steps(stage, stage.op.axis[-1] if self.plan.vector > 1 else None, stage.op.axis[-3:])
        for member in self.group.cone:
            stage = member.materialized.stage
            if member.materialized.is_reduction and member.length > 1:
                stage.compute_at(root, place)
                stage.set_scope("local")
                self.reduce(member)
            elif member.length == 1:
                stage.compute_at(root, place)
                stage.set_scope("local")

    # ---- elements that stay in registers ----

    def stage_input(self, tensor: Tensor, dimensions: Sequence[int]) -> Tensor:
        """The elements of an input that a thread needs, loaded once."""
        readers = [
            self.stage_of(member).op
            for member in self.group.members
            if any(read.tensor.op is tensor.op for read in member.materialized.reads)
        ]
        stages = self.schedule.stage_map
        source = next(
            one
            for reader in readers
            for one in stages[reader].op.input_tensors
            if _is_now(self.schedule, one, tensor)
        )
        if self.plan.is_copied:
            source = self.schedule.cache_read(source, "shared", readers)
            self.copies.append(self.schedule[source])
        copy = self.schedule.cache_read(source, "local", readers)
        stage = self.schedule[copy]
        return self.keep_axes(stage, [stage.op.axis[dimension] for dimension in dimensions])

    def keep(self, member: Member) -> Tensor:
        """The elements of a stage in the layout of the threads; readers then read those."""
        stage = member.materialized.stage
        return self.keep_axes(stage, self.inside(member))

    def keep_axes(self, stage: Stage, inside: Sequence[IterVar]) -> Tensor:
        tensors = stage.op.outputs
        others = [axis for axis in stage.op.axis if not any(axis is one for one in inside)]
        stage.reorder(*others, *inside)
        self.split(stage, inside)
        made = self.schedule.cache_write(list(tensors), "local")
        stage.compute_inline()
        first: Tensor = made[0] if isinstance(made, list) else made
        return first

    # ---- rows that are copied ----

    def copy_rows(self) -> None:
        """The rows of a block to shared memory, and the results from there, in whole vectors."""
        stage = self.group.root.materialized.stage
        long = next(axis for axis in stage.op.axis if extent_of(axis) > 1)
        outer, row = stage.split(long, factor=self.plan.rows)
        stage.bind(outer, self.block)
        self.deal_out(stage, stage.leaf_iter_vars[list(stage.leaf_iter_vars).index(row) :])
        self.root.compute_at(stage, outer)
        for copy in self.copies:
            copy.compute_at(stage, outer)
            self.deal_out(copy, copy.op.axis)

    def deal_out(self, stage: Stage, axes: Sequence[IterVar]) -> None:
        """The widest vectors of which all threads of the block have one."""
        whole = stage.fuse(*axes)
        lanes = self.machine.lanes(stage.op.output(0).dtype)
        while lanes * self.plan.team > self.group.length:
            lanes //= 2
        whole, vector = stage.split(whole, factor=lanes)
        whole, thread = stage.split(whole, factor=self.plan.team)
        _, row_thread = stage.split(whole, factor=self.plan.rows)
        stage.bind(thread, self.team)
        stage.bind(row_thread, self.row_thread)
        stage.vectorize(vector)

    # ---- loops ----

    def stage_of(self, member: Member) -> Stage:
        """The stage that computes a member now."""
        return self.root if member is self.group.root else member.materialized.stage

    def inside(self, member: Member) -> list[IterVar]:
        """The axes inside a row, as the schedule has them now."""
        return [
            axis
            for axis, known in zip(
                self.stage_of(member).op.axis, member.materialized.compute.axes, strict=True
            )
            if any(known is one for one in member.inside)
        ]

    def split(self, stage: Stage, inside: Sequence[IterVar]) -> tuple[IterVar, IterVar, IterVar | None]:
        """The loops of a row: steps, threads of the team, and adjacent elements."""
        loops = list(inside)
        vector = None
        # The vector first: its elements then have one quotient by every factor.
        if self.plan.vector > 1:
            loops[-1], vector = stage.split(loops[-1], factor=self.plan.vector)
        whole = stage.fuse(*loops) if len(loops) > 1 else loops[0]
        step, thread = stage.split(whole, factor=self.plan.team)
        return step, thread, vector

    def finish_steps(self, stage: Stage, vector: IterVar | None, loops: Sequence[IterVar]) -> None:
        """Writes the steps of a kept tensor out, and loads vectors."""
        step = loops[0] if vector is not None else loops[-2]
        if self.plan.steps <= UNROLLED_STEPS:
            stage.unroll(step)
        if vector is not None:
            stage.vectorize(vector)

    def schedule_root(self) -> IterVar:
        """Deals the rows out to blocks, and the elements of a row to the team; the place for everything inside."""
        member = self.group.root
        stage = self.root
        axes = list(stage.op.axis)
        rows = [axes[position] for position in member.rows]
        inside = [] if member.materialized.is_reduction else self.inside(member)
        ones = [axis for axis in axes if not any(axis is one for one in (*rows, *inside))]
        if axes:
            stage.reorder(*ones, *rows, *inside)
        row = self.one_axis(stage, rows, ones)
        place = row
        if row is not None:
            place = self.bind_row(stage, row)
        if member.materialized.is_reduction:
            thread = self.reduce(member)
            stage.set_store_predicate(equal(self.team.var, 0))
            return thread
        if not inside:
            stage.env_threads([self.team] if row is not None else [self.block_of_one(), self.team])
            stage.set_store_predicate(equal(self.team.var, 0))
            assert place is not None
            return place
        step, thread, vector = self.split(stage, inside)
        stage.reorder(thread, step, *([] if vector is None else [vector]))
        stage.bind(thread, self.team)
        if self.plan.steps <= UNROLLED_STEPS and self.plan.is_kept:
            stage.unroll(step)
        if vector is not None:
            stage.vectorize(vector)
        return thread

    def one_axis(self, stage: Stage, rows: Sequence[IterVar], ones: Sequence[IterVar]) -> IterVar | None:
        """All rows as one axis; an axis of one element where there is one row."""
        if rows:
            return stage.fuse(*rows) if len(rows) > 1 else rows[0]
        if ones:
            return ones[-1]
        return stage.fuse()

    def bind_row(self, stage: Stage, row: IterVar) -> IterVar:
        if self.plan.is_copied:
            stage.bind(row, self.row_thread)
            return row
        if self.plan.rows == 1:
            stage.bind(row, self.block)
            return row
        outer, inner = stage.split(row, factor=self.plan.rows)
        stage.bind(outer, self.block)
        stage.bind(inner, self.row_thread)
        return inner

    def block_of_one(self) -> IterVar:
        return thread_axis((0, 1), "blockIdx.x")

    def reduce(self, member: Member) -> IterVar:
        """Each thread reduces its share, then the team combines; the axis that is bound to the team."""
        stage = member.materialized.stage
        operation = stage.op
        assert isinstance(operation, ComputeOp)
        axes = sorted(operation.reduce_axis, key=lambda axis: _position(axis, member.inside))
        stage.reorder(*axes)
        step, thread, vector = self.split(stage, axes)
        stage.reorder(thread, step, *([] if vector is None else [vector]))
        stage.bind(thread, self.team)
        if self.plan.steps <= UNROLLED_STEPS and self.plan.is_kept:
            stage.unroll(step)
        elif self.plan.steps % LOADS_AHEAD == 0:
            _, step = stage.split(step, factor=LOADS_AHEAD)
            stage.unroll(step)
        if vector is not None:
            stage.unroll(vector)
            if not self.plan.is_kept or not self.group.staged:
                self.load_vectors(stage, step, member)
        return thread

    def load_vectors(self, stage: Stage, step: IterVar, member: Member) -> None:
        """Loads what a step reads from memory as vectors."""
        own = {one.materialized.operation for one in self.group.members}
        wanted = [
            read.tensor
            for read in member.materialized.reads
            if read.tensor.op not in own and read.indices[-1] is member.inside[-1].var
        ]
        for tensor in dict.fromkeys(wanted):
            now = [one for one in stage.op.input_tensors if _is_now(self.schedule, one, tensor)]
            if not now:
                continue
            copy = self.schedule[self.schedule.cache_read(now[0], "local", [stage.op])]
            copy.compute_at(stage, step)
            copy.vectorize(copy.op.axis[-1])


def _position(axis: IterVar, inside: Sequence[IterVar]) -> int:
    """The place of a reduction axis in a row; one of a single element comes first."""
    return next((number for number, one in enumerate(inside) if one.var is axis.var), -1)


def _is_now(schedule: Schedule, now: Tensor, tensor: Tensor) -> bool:
    """True if a tensor of the schedule is the one that an earlier step replaced."""
    found = schedule.stage_map.get(tensor.op)
    return found is not None and found.op is now.op and now.value_index == tensor.value_index
