"""Running a pipeline: one thread a stage."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.contrib.graph_executor import GraphModule
from tilewright.relay.pipeline_executor.factory import PipelineExecutorFactoryModule
from tilewright.runtime.loading import load_module
from tilewright.runtime.ndarray import NDArray, array
from tilewright.support.errors import TilewrightError


class _Run:
    """One input on its way through the pipeline: what each stage has received, and what has come out."""

    def __init__(self, num_stages: int) -> None:
        self.received: list[dict[str, Any]] = [{} for _ in range(num_stages)]
        self.outputs: dict[int, np.ndarray[Any, Any]] = {}
        self.failure: Exception | None = None


class PipelineModule:
    """A pipeline that runs. ``set_input`` and ``run`` start an input on its way and return at once; ``get_output``
    waits for the results, in the order of the runs."""

    def __init__(self, module: PipelineExecutorFactoryModule) -> None:
        executors, text = module.graph_executor_create(module.pipeline_mods, module.mods_config)
        config = json.loads(text)
        self._executors: list[GraphModule] = executors
        self._outputs: list[list[Mapping[str, Any]]] = [stage["output"] for stage in config["stages"]]
        self._sources = _input_places(executors, self._outputs, config["inputs"])
        self._num_outputs = 1 + max(
            (place["global_output_index"] for place in self._places() if "global_output_index" in place),
            default=-1,
        )
        self._inputs: dict[str, np.ndarray[Any, Any]] = {}
        self._changed = threading.Condition()
        self._runs: list[_Run] = []
        self._first = 0
        self._is_stopped = False
        self._threads: list[threading.Thread] = []

    def _places(self) -> list[Mapping[str, Any]]:
        return [place for stage in self._outputs for one in stage for place in one["dependencies"]]

    @property
    def num_outputs(self) -> int:
        """How many outputs the pipeline has."""
        return self._num_outputs

    @staticmethod
    def load_library(config_file_name: str | Path) -> PipelineModule:
        """The pipeline that ``export_library`` stored."""
        path = Path(config_file_name)
        try:
            config = json.loads(path.read_text())
            libraries = [
                load_module(str(path.parent / Path(stage["library"]).name)) for stage in config["stages"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TilewrightError(f"{path} is not a stored pipeline: {error}") from error
        return PipelineModule(PipelineExecutorFactoryModule(libraries, config))

    def input_names(self) -> list[str]:
        """The names of the inputs of the pipeline."""
        return list(self._sources)

    def set_input(self, key: str, value: Any) -> None:
        """Set an input for the runs that follow; it is copied."""
        if key not in self._sources:
            raise TilewrightError(f"the pipeline has no input {key!r}; it has {', '.join(self._sources)}")
        self._inputs[key] = np.array(value.numpy() if hasattr(value, "numpy") else value)

    def run(self, **inputs: Any) -> None:
        """Start the inputs on their way."""
        for name, value in inputs.items():
            self.set_input(name, value)
        missing = [name for name in self._sources if name not in self._inputs]
        if missing:
            raise TilewrightError(f"inputs of the pipeline have no value: {', '.join(missing)}")
        if self._is_stopped:
            raise TilewrightError("the pipeline was stopped")
        if not self._threads:
            for number in range(len(self._executors)):
                self._threads.append(threading.Thread(target=self._serve, args=(number,), daemon=True))
                self._threads[-1].start()
        run = _Run(len(self._executors))
        for name, places in self._sources.items():
            for stage, place in places:
                run.received[stage][place] = self._inputs[name]
        with self._changed:
            self._runs.append(run)
            self._changed.notify_all()

    def get_output(self, timeout: float | None = None) -> list[NDArray]:
        """The outputs of the first run whose outputs were not taken yet."""
        with self._changed:
            if not self._runs:
                raise TilewrightError("there is no run whose outputs were not taken: call run first")
            run = self._runs[0]
            done = lambda: run.failure is not None or len(run.outputs) == self._num_outputs
            if not self._changed.wait_for(done, timeout):
                raise TimeoutError(f"the pipeline took longer than {timeout:g} s")
            self._runs.pop(0)
            self._first += 1
        if run.failure is not None:
            raise TilewrightError(f"the pipeline failed: {run.failure}") from run.failure
        return [array(run.outputs[number]) for number in range(self._num_outputs)]

    @property
    def num_executing_pipeline(self) -> int:
        """Runs whose outputs were not taken yet."""
        return len(self._runs)

    def stop(self) -> None:
        """End the threads, after the runs that are in their stages now."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _serve(self, number: int) -> None:
        """The work of a stage: run after run, each as soon as all its inputs are there."""
        wanted = {place for places in self._sources.values() for stage, place in places if stage == number}
        for stage in self._outputs:
            for one in stage:
                wanted |= {
                    str(place["input_name"])
                    for place in one["dependencies"]
                    if place.get("mod_idx") == number
                }
        position = 0
        while True:
            with self._changed:
                run = None
                while run is None and not self._is_stopped:
                    position = max(position, self._first)  # nobody waits for runs whose outputs were taken
                    run = self._next(number, position, wanted)
                    if run is None:
                        self._changed.wait()
                if run is None:
                    return
            position += 1
            if run.failure is None:
                self._do(number, run)

    def _next(self, number: int, position: int, wanted: set[str]) -> _Run | None:
        """The run at a position if the stage can take it: it has its inputs, or failed elsewhere."""
        if position - self._first >= len(self._runs):
            return None
        run = self._runs[position - self._first]
        return run if run.failure is not None or wanted <= run.received[number].keys() else None

    def _do(self, number: int, run: _Run) -> None:
        executor = self._executors[number]
        try:
            for name, value in run.received[number].items():
                executor.set_input(name, value)
            executor.run()
            values = {
                one["output_idx"]: executor.get_output(one["output_idx"]).numpy()
                for one in self._outputs[number]
            }
        except Exception as error:  # noqa: BLE001 - whoever takes the outputs gets it
            with self._changed:
                run.failure = error
                self._changed.notify_all()
            return
        with self._changed:
            run.received[number] = {}
            for one in self._outputs[number]:
                for place in one["dependencies"]:
                    value = values[one["output_idx"]]
                    if "global_output_index" in place:
                        run.outputs[place["global_output_index"]] = value
                    else:
                        run.received[place["mod_idx"]][place["input_name"]] = value
            self._changed.notify_all()


def _input_places(
    executors: Sequence[GraphModule],
    outputs: Sequence[Sequence[Mapping[str, Any]]],
    given: Mapping[str, Sequence[Sequence[Any]]],
) -> dict[str, list[tuple[int, str]]]:
    """Where the inputs of the pipeline go; those of stages that nothing feeds go by their own names."""
    made = {name: [(int(stage), str(place)) for stage, place in places] for name, places in given.items()}
    fed = {place for places in made.values() for place in places}
    for stage in outputs:
        for one in stage:
            fed |= {
                (int(place["mod_idx"]), str(place["input_name"]))
                for place in one["dependencies"]
                if "mod_idx" in place
            }
    for number, executor in enumerate(executors):
        for name in executor.module.inputs_without_value():
            if (number, name) not in fed:
                made.setdefault(name, []).append((number, name))
    return made
