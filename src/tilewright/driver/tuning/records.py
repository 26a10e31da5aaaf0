"""Applies files of tuning records while a model is compiled, and says what became of them.

A file may have records of ``tilewright tune``, of AutoScheduler and of AutoTVM, in any order. For a kernel that both of
the first have something for, the one with the greater gain over the untuned schedule is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tilewright.auto_scheduler.dispatcher import ApplyHistoryBest
from tilewright.auto_scheduler.untuned import Comparison
from tilewright.autotvm.task.dispatcher import ApplyHistoryBest as ApplyTemplatesBest
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.search.kernel_records import KernelRecord, TunedKernels
from tilewright.search.records import Loaded, RecordFile
from tilewright.support.errors import TilewrightError
from tilewright.te.rewritten_layout import RewrittenLayout
from tilewright.te.schedule.schedule import Schedule


class _States(ApplyHistoryBest):
    """AutoScheduler's records; remembers what it found for the functions it was asked about."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.found: Comparison | None = None

    def _query_inside(self, target: Any, workload_key: str, func_name: str) -> Any:
        self.found = self.best.get((workload_key, target.kind.name))
        return super()._query_inside(target, workload_key, func_name)


class RecordedSchedules(TuningScope):
    """The schedules of a file: those over choices of constructed schedules, and AutoScheduler's."""

    lays_out_weights: ClassVar[bool] = True

    def __init__(self, kernels: TunedKernels, states: _States | None) -> None:
        self.kernels = kernels
        self.states = states
        self.used_states: set[str] = set()
        """The keys of AutoScheduler's tasks whose states are used."""

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The faster of both; None where there is neither."""
        chosen = self.kernels.schedule(request)
        gain = self.kernels.gain_of(request) if chosen is not None else 1.0
        if self.states is None:
            return chosen
        self.states.found = None
        other = self.states.schedule(request)
        best = self.states.found
        if other is None or (best is not None and chosen is not None and best.untuned / best.cost <= gain):
            return chosen
        if best is not None:
            self.used_states.add(best.measured.task.workload_key)
        if chosen is not None and self.kernels.last is not None:
            del self.kernels.used[self.kernels.last]
        return other

    def weight_layout(self, request: ScheduleRequest) -> RewrittenLayout | None:
        """What AutoScheduler's state wants, where it is the faster of both."""
        if self.states is None:
            return None
        self.states.found = None
        layout = self.states.weight_layout(request)
        best = self.states.found
        if layout is None or best is None or best.untuned / best.cost <= self.kernels.gain_of(request):
            return None
        self.used_states.add(best.measured.task.workload_key)
        return layout


@dataclass(frozen=True)
class AppliedRecords:
    """What a build used of a file of records."""

    path: str
    scope: RecordedSchedules
    templates: int
    """How many records are AutoTVM's."""
    problems: str

    @property
    def used(self) -> int:
        """Kernels that use a record of their own."""
        return len(self.scope.kernels.used) + len(self.scope.used_states)

    def lines(self) -> list[str]:
        """For people: how many kernels use records, and what was not used, and why."""
        kernels, states = self.scope.kernels, self.scope.states
        known = len(kernels.best) + (0 if states is None else len(states.best))
        found = []
        if self.used:
            text = "1 kernel uses a schedule" if self.used == 1 else f"{self.used} kernels use schedules"
            found.append(f"{self.path}: {text} that tuning found")
        elif known:
            found.append(f"{self.path}: none of the {known} kernels that it is about is in this model")
        elif not self.templates:
            found.append(
                f"{self.path}: no record in it measured faster than the untuned schedule: nothing to apply"
            )
        if self.templates:
            found.append(f"{self.path}: {self.templates} records of AutoTVM are applied where they fit")
        for reason in list(dict.fromkeys(kernels.refused.values()))[:3]:
            count = sum(one == reason for one in kernels.refused.values())
            found.append(
                f"{self.path}: the record of {count} kernel{'s' if count > 1 else ''} is not used: {reason}"
            )
        return [*found, *([self.problems] if self.problems else [])]


@contextmanager
def applied_records(path: str | None) -> Iterator[AppliedRecords | None]:
    """Compile with the records of a file within the block; with None, as ever."""
    if path is None:
        yield None
        return
    content = load_records(path)
    scope = RecordedSchedules(TunedKernels(content.kernels), _States(path) if content.states else None)
    with ExitStack() as stack:
        if content.templates:
            stack.enter_context(ApplyTemplatesBest(path))
        stack.enter_context(scope)
        yield AppliedRecords(path, scope, content.templates, content.problems)


@dataclass
class RecordContent:
    """What a file has: records over choices of constructed schedules, and how many of AutoScheduler and AutoTVM."""

    kernels: list[KernelRecord] = field(default_factory=list)
    states: int = 0
    templates: int = 0
    problems: str = ""


def load_records(path: str) -> RecordContent:
    """The records of a file; an error for a file that has none."""
    where = Path(path)
    if where.is_dir():
        raise TVMCException(f"{path} is a folder, not a file of tuning records")
    if not where.exists():
        raise TVMCException(f"there is no file {path}: 'tilewright tune MODEL -o {path}' makes one")
    try:
        loaded = RecordFile(where).read(record_of)
    except OSError as problem:
        raise TVMCException(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if not loaded.records:
        raise TVMCException(f"{path} has no tuning records{_first_problem(loaded)}")
    return RecordContent(
        [one for one in loaded.records if isinstance(one, KernelRecord)],
        loaded.records.count("state"),
        loaded.records.count("template"),
        loaded.summary(path),
    )


def record_of(value: Any) -> KernelRecord | str:
    """A record, or the kind of one that another tuner reads: ``state`` is AutoScheduler's, ``template`` AutoTVM's."""
    found = KernelRecord.from_json(value)
    if found is not None:
        return found
    return "state" if "i" in value else "template"


def require_records(path: str, option: str) -> None:
    """An error for a file that has something else in it; one that is not there yet, or empty, will do."""
    loaded = RecordFile(path).read(record_of)
    if loaded.problems and not loaded.records:
        raise TilewrightError(
            f"{path} is not a file of tuning records{_first_problem(loaded)}: choose another name with {option}"
        )


def _first_problem(loaded: Loaded[Any]) -> str:
    return f" (line {loaded.problems[0].number}: {loaded.problems[0].reason})" if loaded.problems else ""
