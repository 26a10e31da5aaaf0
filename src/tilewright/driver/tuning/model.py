"""Tunes a model: its kernels one by one, then the model as a whole, with and without what was found.

A kernel that is faster on its own need not make the model faster. What is kept is what the comparison of the whole
model bears out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright import __version__
from tilewright.driver.tvmc.compiler import Settings
from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.executors import GraphRunnable, MachineRunnable, Runnable
from tilewright.driver.tvmc.export import Compiled, CompiledProgram
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.driver.tvmc.runner import complete_inputs, with_shapes
from tilewright.driver.tvmc.tensors import module_inputs
from tilewright.relay.backend.executor_factory import GraphExecutorFactoryModule
from tilewright.relay.backend.explain import kernel_functions
from tilewright.search.kernel_records import KernelRecord, TunedKernels, best_choices, read_kernel_records
from tilewright.search.kernel_task import KernelTask, kernel_tasks
from tilewright.search.kernel_tuner import CurvePoint, KernelTuner, TuneListener, TuneOptions
from tilewright.search.outcomes import ErrorKind, Measured, typical
from tilewright.search.records import RecordFile
from tilewright.support.cbuild import is_host

_COMPARING_SHARE = 0.1
_LONGEST_COMPARING = 20.0
_NOISE = 1.005
"""Two runs of the same model differ by that much."""
_STRICTER = (1.0, 1.05, 1.15)
"""Gains that a kernel must have had to be used, where the model as a whole is slower with all of them."""


@dataclass(frozen=True)
class Comparison:
    """Seconds of a run, untuned and tuned, from runs that took turns."""

    untuned: float
    tuned: float
    runs: int

    @property
    def gain(self) -> float:
        """How many times faster the tuned model is."""
        return self.untuned / self.tuned


@dataclass(frozen=True)
class ModelTuning:
    """What tuning a model came to. ``kernels`` is how many kernels the model has, ``tasks`` those with something to
    choose; ``applied`` are the gains of those that use what was found."""

    model: str
    target: str
    records: str
    kernels: int
    tasks: Sequence[KernelTask]
    curve: Sequence[CurvePoint]
    trials: int
    failures: int
    resumed: int
    seconds: float
    comparison: Comparison | None
    applied: Mapping[str, float]

    @property
    def improved(self) -> int:
        """Tasks that use what was found."""
        return len(self.applied)

    def last_line(self) -> str:
        """The result in one line, whatever it is."""
        tasks = f"{self.improved} of {len(self.tasks)} tasks improved"
        if not self.tasks:
            return "nothing to tune: no kernel of this model has a schedule with choices"
        if self.improved == 0 or self.comparison is None:
            return f"not faster than untuned; {tasks}"
        gain = self.comparison.gain
        if gain < _NOISE:
            return f"no measurable difference from untuned ({100 * (gain - 1):+.1f} %); {tasks}"
        return f"{100 * (gain - 1):.1f} % faster than untuned; {tasks}"


def tune_model(
    model: TVMCModel,
    settings: Settings,
    name: str,
    records: str,
    options: TuneOptions,
    listener: TuneListener | None = None,
    fill_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> ModelTuning:
    """Tune a model within the time that the options give; what is measured is appended to ``records``."""
    starts = time.monotonic()
    triple = str(settings.target.attrs.get("mtriple", ""))
    if not is_host(triple) or "cpu" not in settings.target.keys:
        raise TVMCException(
            f"kernels for {settings.target} cannot be measured here: tune on the machine that runs them"
        )
    if settings.executor == "aot":
        # The kernels are the same, and the graph executor can be compared with itself.
        settings = replace(settings, executor="graph")
    infos = module_inputs(model.mod, model.params)
    values = complete_inputs(with_shapes(infos, fill_shapes), {}, "random")
    untuned = settings.compile(model.mod, model.params)
    functions = kernel_functions(settings.fused(model.mod, model.params, untuned))
    file = RecordFile(records)
    with settings.context(model.mod, model.params):
        tasks = kernel_tasks(functions, settings.target)
        comparing = min(_COMPARING_SHARE * options.seconds, _LONGEST_COMPARING)
        left = max(options.seconds - (time.monotonic() - starts) - comparing, 0.0)
        tuner = KernelTuner(tasks, file, replace(options, seconds=left), listener)
        tuner.tune()
    comparison, applied = None, {}
    if tasks:
        # A search without a limit of time may have been short.
        comparing = min(comparing, max(_COMPARING_SHARE * (time.monotonic() - starts), 1.0))
        bench = _Bench(model, settings, untuned, values, file, tasks, comparing)
        comparison, applied = bench.compare()
    return ModelTuning(
        name,
        str(settings.target),
        records,
        len(functions),
        tasks,
        tuner.curve,
        tuner.trials,
        tuner.failures,
        tuner.resumed,
        time.monotonic() - starts,
        comparison,
        applied,
    )


class _Bench:
    """Compares the model with and without what was found, and withdraws what does not bear out."""

    def __init__(
        self,
        model: TVMCModel,
        settings: Settings,
        untuned: Compiled,
        values: Mapping[str, Any],
        file: RecordFile,
        tasks: Sequence[KernelTask],
        seconds: float,
    ) -> None:
        self.model, self.settings, self.values = model, settings, values
        self.file, self.tasks, self.seconds = file, tasks, seconds
        self.untuned = _runnable(untuned, values)

    def compare(self) -> tuple[Comparison | None, dict[str, float]]:
        """The comparison with what is kept, and the gains of that by the kernels' names."""
        records = read_kernel_records(self.file).records
        names = {task.workload: task.name for task in self.tasks}
        found = {work: gain for work, (_, gain) in best_choices(records).items() if work in names}
        comparison = None
        for least in _STRICTER:
            kept = {work for work, gain in found.items() if gain >= least}
            if not kept:
                break
            # Records of kernels that the model as a whole does not bear out are not applied.
            scope = TunedKernels(record for record in records if record.workload in kept)
            with scope:
                tuned = self.settings.compile(self.model.mod, self.model.params)
            comparison = self._take_turns(_runnable(tuned, self.values))
            if comparison.gain >= 1 / _NOISE:
                self._withdraw(records, set(found) - kept)
                return comparison, {names[work]: gain for work, gain in scope.used.items()}
        self._withdraw(records, set(found))
        return comparison, {}

    def _take_turns(self, tuned: Runnable) -> Comparison:
        once = max(self.untuned.benchmark(1, 1).mean, 1e-6)
        number = max(1, int(0.02 / once))
        ends = time.monotonic() + self.seconds
        first: list[float] = []
        second: list[float] = []
        while len(first) < 7 or time.monotonic() < ends:
            first.append(self.untuned.benchmark(1, number).mean)
            second.append(tuned.benchmark(1, number).mean)
        return Comparison(typical(first), typical(second), number * len(first))

    def _withdraw(self, records: Sequence[KernelRecord], workloads: set[Any]) -> None:
        """Say of what was found for some kernels that it is not faster after all."""
        lines = []
        now = time.time()
        for work in workloads:
            for record in records:
                if record.workload == work and record.gain is not None and record.gain > 1:
                    nothing = Measured(record.costs, ErrorKind.NO_ERROR, "", 0.0, now)
                    lines.append(KernelRecord.of(work, dict(record.choices), nothing, 1.0).line(__version__))
        self.file.append(dict.fromkeys(lines))


def _runnable(compiled: Compiled, values: Mapping[str, Any]) -> Runnable:
    made: Runnable
    if isinstance(compiled, CompiledProgram):
        made = MachineRunnable(compiled.executable)
    else:
        assert isinstance(compiled, GraphExecutorFactoryModule)
        made = GraphRunnable(compiled.graph_json_str, compiled.lib, compiled.params)
    made.set_inputs(values)
    return made
