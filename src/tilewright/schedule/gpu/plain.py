"""The plain schedule, for devices whose threads neither share memory nor wait for one another.

What computes no reduction is inlined into its readers. Every other stage is a kernel of its own: its elements are dealt
out to blocks of threads, and each thread computes whole elements, reductions included.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.gpu.construct import bind_statements
from tilewright.schedule.gpu.injective import BLOCK
from tilewright.schedule.gpu.machine import GpuMachine, current_gpu
from tilewright.support.recursion import with_recursion_room
from tilewright.te.operation import ComputeOp, PlaceholderOp, thread_axis
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Tensor


@with_recursion_room
def construct_plain(outputs: Sequence[Tensor]) -> Schedule:
    """The schedule of the graph that leads to these tensors, for the current target."""
    schedule = create_schedule([tensor.op for tensor in outputs])
    machine = current_gpu()
    auto_inline_injective(schedule)
    for stage in schedule.stages:
        if stage.attach_type == AttachType.INLINE or isinstance(stage.op, PlaceholderOp):
            continue
        if isinstance(stage.op, ComputeOp):
            _bind_elements(stage, machine)
        else:
            bind_statements(stage, machine)
    return schedule


def _bind_elements(stage: Stage, machine: GpuMachine) -> None:
    """An element for each thread."""
    axes = list(stage.op.axis)
    if not axes:
        stage.env_threads([thread_axis((0, 1), "blockIdx.x"), thread_axis((0, 1), "threadIdx.x")])
        return
    if any(str(extent) == "0" for extent in stage.op.output(0).shape):
        return
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    block, thread = stage.split(fused, factor=machine.threads(BLOCK))
    stage.bind(block, thread_axis("blockIdx.x"))
    stage.bind(thread, thread_axis("threadIdx.x"))
