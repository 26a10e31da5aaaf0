"""The GPU scheduler, whose name for a schedule says where one thread does what others wait for."""

from __future__ import annotations

from tilewright.ir.functor import post_order
from tilewright.schedule.gpu.machine import current_gpu
from tilewright.schedule.gpu.statements import give_threads
from tilewright.schedule.scheduler import Outputs, Scheduler
from tilewright.te.extern import ExternOp
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.tensor import Tensor
from tilewright.tir.stmt import AttrStmt

ONE_THREAD = "one thread"


class ThreadScheduler(Scheduler):
    """The scheduler of devices with blocks of threads."""

    def name_for(self, outputs: Outputs) -> str:
        name = super().name_for(outputs)
        tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        operations = operations_in_order([tensor.op for tensor in tensors])
        return f"{name}, {ONE_THREAD}" if any(map(_has_single_thread, operations)) else name


def _has_single_thread(operation: object) -> bool:
    """True if a part of an operation runs in one thread, because its statements depend on one another."""
    if not isinstance(operation, ExternOp):
        return False
    if any(
        isinstance(node, AttrStmt) and node.attr_key == "thread_extent" for node in post_order(operation.body)
    ):
        return False
    threaded = give_threads(operation, current_gpu().max_threads)
    return threaded is not None and threaded.has_single_thread
