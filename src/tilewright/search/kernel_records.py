"""Records about the kernels of models: which of its own choices a constructed schedule was measured with.

The lines are AutoTVM's (version 0.2). The task is ``tilewright.kernel``; its arguments are the operator, the name of
its implementation, the fingerprint of the fused computation, and the types of the kernel's arguments. Each choice is an
entity ``[name, "ot", value]``. A line also says which machine measured it and, where the kernel and its constructed
schedule took turns, how many times faster it was (``gain``): only that has a record applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.schedule.decisions import Decisions, as_value
from tilewright.schedule.tuning import ScheduleRequest, TuningScope
from tilewright.search.outcomes import ErrorKind, Measured, typical
from tilewright.search.records import Loaded, RecordFile
from tilewright.search.workload import fingerprint
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.target import Target
from tilewright.target.cpu import describe_cpu
from tilewright.te.schedule.schedule import Schedule

TASK = "tilewright.kernel"
VERSION = 0.2


def machine_of(target: Target) -> str:
    """The processor of a target that runs on one, as records name it."""
    if "cpu" not in target.keys:
        return ""
    cpu = describe_cpu(target)
    return f"{cpu.name}, {cpu.vector_bits} bits, {cpu.cores} cores"


@dataclass(frozen=True)
class Workload:
    """A kernel: what it computes, and for which target."""

    target: str
    operator: str
    implementation: str
    fingerprint: str
    machine: str
    """The processor, as far as it decides what is fast; empty where the target says it all."""
    types: tuple[Any, ...] = field(compare=False, hash=False)

    @staticmethod
    def of(request: ScheduleRequest) -> Workload:
        """The workload of a fused function."""
        types = tuple(
            (tuple(str(extent) for extent in tensor.shape), str(tensor.dtype)) for tensor in request.arguments
        )
        return Workload(
            str(request.target),
            request.operator,
            request.implementation,
            fingerprint(request.arguments, request.outputs),
            machine_of(request.target),
            types,
        )


@dataclass(frozen=True)
class KernelRecord:
    """What was measured of a kernel with some choices. ``gain`` is how many times faster it was than the constructed
    schedule, where both took turns; None where they did not."""

    workload: Workload
    choices: tuple[tuple[str, Any], ...]
    costs: tuple[float, ...]
    error_kind: ErrorKind
    message: str
    seconds: float
    timestamp: float
    gain: float | None = None

    @staticmethod
    def of(
        workload: Workload, choices: Mapping[str, Any], measured: Measured, gain: float | None = None
    ) -> KernelRecord:
        """The record of a measurement."""
        return KernelRecord(
            workload,
            tuple(sorted(choices.items())),
            measured.costs,
            measured.error_kind,
            measured.message,
            measured.seconds,
            measured.timestamp,
            gain,
        )

    @property
    def cost(self) -> float:
        """Seconds a call; infinite for a failure."""
        return typical(self.costs) if self.error_kind == ErrorKind.NO_ERROR and self.costs else float("inf")

    def line(self, version: str) -> str:
        """The record as a line of a file; ``version`` is this package's."""
        one = self.workload
        said: dict[str, Any] = {} if self.gain is None else {"gain": self.gain}
        if self.message:
            said["error"] = self.message
        return json.dumps(
            {
                "input": [
                    one.target,
                    TASK,
                    [one.operator, one.implementation, one.fingerprint, one.types],
                    {},
                ],
                "config": {
                    "index": 0,
                    "code_hash": None,
                    "entity": [[name, "ot", value] for name, value in self.choices],
                },
                "result": [self.costs, int(self.error_kind), self.seconds, self.timestamp],
                "version": VERSION,
                "tvm_version": "0.8.0",
                "tilewright": {"version": version, "machine": one.machine, **said},
            },
            ensure_ascii=False,
        )

    @staticmethod
    def from_json(value: Any) -> KernelRecord | None:
        """The record of a line; None for a line of another tuner, and an error for one that is none at all."""
        if not isinstance(value, dict):
            raise TilewrightError("not a tuning record: it is not an object of JSON")
        if "i" in value and "r" in value:
            return None
        if "input" not in value or "result" not in value:
            raise TilewrightError("not a tuning record: it has no input and result")
        target, task, arguments, _ = value["input"]
        if task != TASK:
            return None
        operator, implementation, digest, types = arguments
        costs, kind, seconds, timestamp = value["result"]
        said = value.get("tilewright", {})
        return KernelRecord(
            Workload(target, operator, implementation, digest, str(said.get("machine", "")), as_value(types)),
            tuple(sorted((name, as_value(choice)) for name, _, choice in value["config"]["entity"])),
            tuple(float(cost) for cost in costs),
            ErrorKind(kind),
            str(said.get("error", "")),
            float(seconds),
            float(timestamp),
            None if said.get("gain") is None else float(said["gain"]),
        )


def read_kernel_records(file: RecordFile) -> Loaded[KernelRecord]:
    """The records about kernels in a file, which may also have those of other tuners."""
    loaded = file.read(KernelRecord.from_json)
    return Loaded([record for record in loaded.records if record is not None], loaded.problems)


Choices = tuple[tuple[str, Any], ...]


Gains = dict[Workload, dict[Choices, float]]


def gains_of(records: Iterable[KernelRecord]) -> Gains:
    """For each kernel, the choices that are faster than the constructed schedule, and how many times. What was compared
    last about some choices counts."""
    said: Gains = {}
    for record in records:
        if record.gain is not None:
            said.setdefault(record.workload, {})[record.choices] = record.gain
    faster = {
        workload: {choices: gain for choices, gain in known.items() if gain > 1.0}
        for workload, known in said.items()
    }
    return {workload: known for workload, known in faster.items() if known}


def best_choices(gains: Gains) -> dict[Workload, tuple[Choices, float]]:
    """For each kernel, the choices of the greatest gain, and that."""
    return {workload: max(known.items(), key=lambda pair: pair[1]) for workload, known in gains.items()}


class TunedKernels(TuningScope):
    """Constructs schedules with the choices that records found faster. After a build, ``used`` are the workloads whose
    records were, and ``refused`` says why others were not."""

    def __init__(self, records: Iterable[KernelRecord]) -> None:
        self.gains = gains_of(records)
        self.best = best_choices(self.gains)
        self.used: dict[Workload, float] = {}
        self.refused: dict[Workload, str] = {}
        self.last: Workload | None = None
        self._by_fingerprint = {workload.fingerprint: workload for workload in self.best}

    def gain_of(self, request: ScheduleRequest) -> float:
        """How many times faster than the constructed schedule its records say that a function is."""
        return self.best.get(Workload.of(request), ((), 1.0))[1]

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The schedule with the best choices; None for a kernel without any."""
        if not self.best:
            return None
        workload = Workload.of(request)
        if workload not in self.best:
            other = self._by_fingerprint.get(workload.fingerprint)
            if other is not None and other != workload:
                self.refused[workload] = _why_not(other, workload)
            return None
        choices, gain = self.best[workload]
        try:
            with Decisions(dict(choices)) as decisions:
                made = request.construct()
        except ScheduleError as problem:
            self.refused[workload] = str(problem)
            return None
        if decisions.unused:
            self.refused[workload] = f"there is no choice {', '.join(decisions.unused)} here any more"
            return None
        self.used[workload] = gain
        self.last = workload
        return made


def _why_not(recorded: Workload, wanted: Workload) -> str:
    """Why a record of the same computation does not count."""
    if recorded.target != wanted.target:
        return f"it was measured for the target {recorded.target!r}, and this is {wanted.target!r}"
    if recorded.machine != wanted.machine:
        return f"it was measured on another machine ({recorded.machine}); this is {wanted.machine}"
    return f"it was measured for the implementation {recorded.implementation}, and {wanted.implementation} is used"
