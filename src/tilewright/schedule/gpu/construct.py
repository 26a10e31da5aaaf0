"""Constructs a GPU schedule for any graph of tensor expressions.

What computes elements from elements is inlined into its readers. Of the rest, every stage that is read by one other
only, and shares its rows, is computed inside it (softmax, normalisation, a reduction with its epilogue); the others are
kernels of their own. A function that is written as statements (an extern) gets threads for its parallel loops, unless
whoever wrote it bound threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.ir.functor import post_order
from tilewright.schedule.cpu.cost import cost_of
from tilewright.schedule.cpu.graph import MaterializedStage, cones, materialized_stages
from tilewright.schedule.gpu.inlining import inline_stages
from tilewright.schedule.gpu.kernel import is_thread_reduction, product_of, schedule_kernel
from tilewright.schedule.gpu.machine import GpuMachine, current_gpu
from tilewright.schedule.gpu.row_plan import plan_rows
from tilewright.schedule.gpu.rows import row_group
from tilewright.schedule.gpu.split_reduction import split_few_rows, split_small_product
from tilewright.schedule.gpu.statements import give_threads
from tilewright.schedule.gpu.tensor_core import use_tensor_cores
from tilewright.schedule.gpu.window import anchor_of
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import with_recursion_room
from tilewright.target.target import Target
from tilewright.te.extern import ExternOp
from tilewright.te.hybrid.operation import HybridOp
from tilewright.te.operation import ComputeOp, PlaceholderOp, thread_axis
from tilewright.te.schedule.dataflow import replace_dataflow, set_operation
from tilewright.te.schedule.normalize import apply_inlining
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import AttrStmt

RECOMPUTED_WORK: Final = 64
"""Operations per element that a reader without a reduction may do again: fewer than memory has it wait for anyway."""


@with_recursion_room
def construct_schedule(outputs: Sequence[Tensor]) -> Schedule:
    """The schedule of the graph that leads to these tensors, for the current target."""
    schedule = create_schedule([tensor.op for tensor in outputs])
    machine = current_gpu()
    use_tensor_cores(schedule, Target.current())
    inline_stages(schedule)
    roots = _find_roots(schedule, machine)
    apply_inlining(schedule)
    for root, cone in _kernels(schedule, roots).items():
        if isinstance(root.operation, ComputeOp) and root.is_schedulable and root.elements() > 0:
            first = _split(schedule, root, cone, machine)
            roots |= set() if first is None else {first}
    for root, cone in _kernels(schedule, roots).items():
        if isinstance(root.operation, ComputeOp):
            if root.is_schedulable and root.elements() > 0:
                schedule_kernel(schedule, root, cone, machine)
        elif not isinstance(root.operation, PlaceholderOp):
            bind_statements(root.stage, machine)
    return schedule


def _kernels(schedule: Schedule, roots: set[Stage]) -> dict[MaterializedStage, list[MaterializedStage]]:
    """The root and the cone of every kernel, producers first."""
    stages = materialized_stages(schedule)
    return cones(stages, {one for one in stages if one.stage in roots})


def _find_roots(schedule: Schedule, machine: GpuMachine) -> set[Stage]:
    """The stages that have to be kernels of their own; what is cheaper to compute again is inlined instead."""
    roots: set[Stage] = set()
    while True:
        kernels = _kernels(schedule, roots)
        misfits = [cone[-1] for root, cone in kernels.items() if cone and not _fits(root, cone, machine)]
        if not misfits:
            return roots
        for one in misfits:
            if _may_be_recomputed(one):
                one.stage.compute_inline()
            else:
                roots.add(one.stage)


def _fits(root: MaterializedStage, cone: list[MaterializedStage], machine: GpuMachine) -> bool:
    """True if one kernel computes them all."""
    if is_thread_reduction(root, cone):
        return True
    group = row_group(root, cone)
    if group is None or root.elements() == 0:
        return False
    # A team that has to read a long row several times should have company.
    plan = plan_rows(group, machine)
    return plan.is_kept or group.row_count >= machine.multiprocessors or group.length <= 64 * plan.team


def _split(
    schedule: Schedule, root: MaterializedStage, cone: list[MaterializedStage], machine: GpuMachine
) -> Stage | None:
    """The new first step of a reduction that is split because it would not fill the device."""
    anchor, product = anchor_of(root, cone), product_of(root, cone)
    if anchor is not None and product is not None:
        return split_small_product(schedule, anchor, product, machine)
    return None if is_thread_reduction(root, cone) else split_few_rows(schedule, root, cone, machine)


def _may_be_recomputed(one: MaterializedStage) -> bool:
    """True for elements that cost less to compute than to store and load, where each reader needs each once."""
    return (
        not one.is_reduction
        and one.is_movable
        and cost_of(one.compute).operations <= RECOMPUTED_WORK
        and all(isinstance(reader.operation, ComputeOp) for reader in one.readers)
        and not any(
            reader.is_reduction and reader.elements() > 1 and _is_reused(one, reader)
            for reader in one.readers
        )
    )


def _is_reused(one: MaterializedStage, reader: MaterializedStage) -> bool:
    """True if a reduction reads each element several times."""
    steps = reader.work() // max(reader.elements(), 1)
    return reader.elements() * steps > 4 * max(one.elements(), 1) * max(cost_of(reader.compute).operations, 1)


def bind_statements(stage: Stage, machine: GpuMachine) -> None:
    """Gives threads to an operation that is written as statements, unless whoever wrote it did."""
    operation = stage.op
    if isinstance(operation, (ExternOp, HybridOp)):
        if any(_binds_thread(node) for node in post_order(operation.body)):
            return
        if isinstance(operation, HybridOp):
            stage.env_threads([thread_axis((0, 1), "blockIdx.x"), thread_axis((0, 1), "threadIdx.x")])
            return
        threaded = give_threads(operation, machine.max_threads)
        if threaded is not None:
            made = ExternOp(
                operation.name,
                operation.tag,
                operation.attrs,
                operation.inputs,
                operation.input_placeholders,
                operation.output_placeholders,
                threaded.body,
                operation.span,
            )
            replaced = dict(zip(operation.outputs, made.outputs, strict=True))
            set_operation(stage, made)
            replace_dataflow(stage.schedule.stages, replaced)
            return
    raise ScheduleError(
        f"{operation.name} has no GPU kernel: it is written as statements that call functions of the host; "
        "it can run on the CPU: say so with relay.annotation.on_device"
    )


def _binds_thread(node: object) -> bool:
    return isinstance(node, AttrStmt) and node.attr_key in ("thread_extent", "virtual_thread")
