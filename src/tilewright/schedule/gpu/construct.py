"""The plain schedule of any graph of tensor expressions, for a device with blocks of threads.

What computes no reduction is inlined into its readers. Every other stage is a kernel of its own: its data axes are
fused and dealt out to blocks of threads, and each thread computes whole elements, reductions included. A function
that is written as statements (an extern, a hybrid function) stays as it is: whoever wrote it binds its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.ir.expr import IntImm
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import with_recursion_room
from tilewright.target.target import Target
from tilewright.te.extern import ExternOp
from tilewright.te.hybrid.operation import HybridOp
from tilewright.te.operation import ComputeOp, PlaceholderOp, thread_axis
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Tensor
from tilewright.tir.functor import post_order_visit
from tilewright.tir.stmt import AttrStmt

MOST_THREADS: Final = 256
"""Threads of a block: enough to fill the schedulers of a multiprocessor, and no more than any device has."""


def threads_per_block() -> int:
    """Threads that a block of the current target may have, up to ``MOST_THREADS``."""
    target = Target.current()
    limit = None if target is None else target.attrs.get("max_num_threads")
    return MOST_THREADS if limit is None else min(int(limit), MOST_THREADS)


@with_recursion_room
def construct_schedule(outputs: Sequence[Tensor]) -> Schedule:
    """The schedule of the graph that leads to these tensors, for the current target."""
    schedule = create_schedule([tensor.op for tensor in outputs])
    auto_inline_injective(schedule)
    for stage in schedule.stages:
        if stage.attach_type == AttachType.INLINE or isinstance(stage.op, PlaceholderOp):
            continue
        if isinstance(stage.op, ComputeOp):
            bind_threads(stage)
        else:
            _require_threads(stage)
    return schedule


def bind_threads(stage: Stage) -> None:
    """Deal the elements of a stage out to blocks of threads, neighbours to neighbours."""
    operation = stage.op
    assert isinstance(operation, ComputeOp)
    if not operation.axes:
        # One element: one thread around the whole stage.
        stage.env_threads([thread_axis((0, 1), "blockIdx.x"), thread_axis((0, 1), "threadIdx.x")])
        return
    extents = operation.output(0).shape
    count = prod(int(extent.value) for extent in extents if isinstance(extent, IntImm))
    is_constant = all(isinstance(extent, IntImm) for extent in extents)
    if is_constant and count == 0:
        return
    threads = min(threads_per_block(), count) if is_constant else threads_per_block()
    block, thread = stage.split(stage.fuse(*operation.axes), factor=threads)
    stage.bind(block, thread_axis("blockIdx.x"))
    stage.bind(thread, thread_axis("threadIdx.x"))


def _require_threads(stage: Stage) -> None:
    """Refuse a stage that no thread of the device would run."""
    operation = stage.op
    if isinstance(operation, (ExternOp, HybridOp)):
        bound: list[str] = []

        def visit(node: object) -> None:
            if isinstance(node, AttrStmt) and node.attr_key in ("thread_extent", "virtual_thread"):
                bound.append(node.attr_key)

        post_order_visit(operation.body, visit)
        if bound:
            return
    raise ScheduleError(
        f"{operation.name} has no GPU kernel yet: it is written as a sequence of statements that bind no threads; "
        "it can run on the CPU (relay.transform.PlanDevices places it there)"
    )
