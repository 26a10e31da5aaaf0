"""What a task's call becomes in a build: graph passes may compute it with another operator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.autotvm.task.constructed.description import described
from tilewright.autotvm.task.constructed.function import task_function
from tilewright.autotvm.task.constructed.kinds import KINDS, workloads_of
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.expr import Call
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target

Workload = tuple[Any, ...]


def compiled_workload(workload: Workload, target: Target) -> Workload:
    """The workload that a build asks for where it compiles this one; as a rule the same."""
    kind = KINDS.get(workload[0])
    if kind is None or not (kind.is_rewritten or _is_dilated(workload)):
        return workload
    return _compiled(workload, str(target))


def _is_dilated(workload: Workload) -> bool:
    return "conv2d" in workload[0] and len(workload) > 5 and workload[5] not in ((1, 1), [1, 1])


@lru_cache(maxsize=512)
def _compiled(workload: Workload, target_text: str) -> Workload:
    target = Target(target_text)
    try:
        function = task_function(workload[0], workload[1:], target).function
    except TilewrightError:
        return workload
    for part in post_order(function.body):
        if isinstance(part, Call) and isinstance(part.op, Op):
            types = [argument.checked_type for argument in part.args]
            call = described(part.op.name, part.attrs, types)
            found = [] if call is None else workloads_of(call, target)
            if found:
                return found[0]
    return workload
