"""The kernels of a model as tasks: fused functions whose constructed schedules have something to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.compile import get_binds, lower
from tilewright.ir.module import IRModule
from tilewright.relay.backend.te_compiler import tensor_expression
from tilewright.relay.function import Function
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decisions
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.search.building import BuildJob
from tilewright.search.decision_search import Assignment, DecisionSearch
from tilewright.search.kernel_records import Workload
from tilewright.search.options import Argument, arguments_of
from tilewright.search.outcomes import Built
from tilewright.support.errors import TilewrightError
from tilewright.target import Target
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor


@dataclass(eq=False)
class KernelTask:
    """A kernel, and how far its search has come. Times are seconds a call, gains how many times faster than the
    constructed schedule."""

    kernel: str
    calls: int
    request: ScheduleRequest
    workload: Workload
    search: DecisionSearch
    arguments: tuple[Argument, ...]
    incumbent: Built | None = None
    """The constructed schedule, compiled."""
    untuned: float = float("inf")
    gain: float = 1.0
    trials: int = 0
    failures: int = 0
    rounds: int = 0
    seconds_per_trial: float = 0.0
    rounds_without_gain: int = 0
    is_exhausted: bool = False
    first_error: str = ""
    confirmed: dict[Assignment, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kernel's name without what all have in front."""
        return self.kernel[max(self.kernel.find("fused_"), 0) :].removeprefix("fused_")

    @property
    def best(self) -> float:
        """Seconds a call with the best choices."""
        return self.untuned / self.gain

    @property
    def operator(self) -> str:
        """The operator that it is scheduled for."""
        return self.workload.operator

    @property
    def changes(self) -> dict[str, Any]:
        """The choices of the best that are not the constructed schedule's."""
        constructed = dict(self.search.constructed)
        return {name: value for name, value in self.search.best if constructed.get(name) != value}

    def lower(self, assignment: Assignment) -> IRModule:
        """The loops with some choices."""
        with Decisions(dict(assignment)), self.request.target:
            made = self.request.construct()
        binds, _ = get_binds(self.request.arguments, compact=True)
        with self.request.target:
            # With the kernel's own name, what was compiled for the model is found in the cache.
            return lower(made, self.request.arguments, self.kernel, binds)

    def job(self, assignment: Assignment) -> BuildJob:
        """How some choices are built."""
        return BuildJob(lambda: self.lower(assignment), self.request.target)


class _Collect(TuningScope):
    """Notes what is asked, and leaves it as it is."""

    def __init__(self) -> None:
        self.asked: list[ScheduleRequest] = []

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        self.asked.append(request)
        return None


def kernel_tasks(kernels: Mapping[str, Sequence[Function]], target: Target) -> list[KernelTask]:
    """A task for each fused function, by its name and the places that call it, that has something to choose. Functions
    of unknown sizes are left out: they cannot be measured as such."""
    tasks: dict[Workload, KernelTask] = {}
    for name, calls in kernels.items():
        with _Collect() as scope:
            tensor_expression(calls[0], target)
        for request in scope.asked[:1]:
            try:
                arguments = arguments_of(request.arguments)
            except TilewrightError:
                continue
            search = DecisionSearch(request.construct)
            if not search.has_choices:
                continue
            workload = Workload.of(request)
            if workload in tasks:  # the same computation under two names
                tasks[workload].calls += len(calls)
                continue
            tasks[workload] = KernelTask(name, len(calls), request, workload, search, arguments)
    return list(tasks.values())


def expression_task(
    name: str, arguments: Sequence[Tensor], outputs: Sequence[Tensor], target: Target
) -> KernelTask:
    """The task of a tensor expression of one's own: its arguments, results included, and its results. The constructed
    schedule is what ``schedule(outputs, target)`` gives."""
    request = ScheduleRequest(
        operator="te",
        implementation="constructed",
        attrs=None,
        inputs=[tensor for tensor in arguments if tensor not in outputs],
        arguments=list(arguments),
        outputs=list(outputs),
        target=target,
        construct=lambda: schedule(outputs, target),
    )
    search = DecisionSearch(request.construct)
    return KernelTask(name, 1, request, Workload.of(request), search, arguments_of(arguments))
