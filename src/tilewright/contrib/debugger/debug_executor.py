"""The graph executor with access to every node: its time, its output, and a trace for Perfetto.

``run`` runs node by node and writes three files into its folder: the graph with the time of each node, a trace in
Chrome's format, and the output of every node as saved parameters. ``debug_datum`` has them as values.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tilewright.contrib.debugger.debug_result import (
    CHROME_TRACE_FILE_NAME,
    GRAPH_DUMP_FILE_NAME,
    OUTPUT_TENSORS_FILE_NAME,
    DebugResult,
)
from tilewright.contrib.graph_executor import GraphModule, get_device
from tilewright.runtime.benchmark import BenchmarkResult, in_groups
from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.foreign import ForeignModule, NodeOperations
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.profiling import NodeRun, Report


def create(
    graph_json_str: str, libmod: Module, device: Device | list[Device], dump_root: str | None = None
) -> GraphModuleDebug:
    """A debugging executor of a graph whose functions are in ``libmod``; its files go to ``dump_root``."""
    if not isinstance(graph_json_str, str):
        raise failure("ValueError", f"the graph is a text, not a {type(graph_json_str).__name__}")
    devices = get_device(libmod, device)
    executor: Module
    if isinstance(libmod, ForeignModule):
        executor = libmod.graph_executor(graph_json_str, devices)
    else:
        executor = GraphExecutor(graph_json_str, libmod, devices)
    return GraphModuleDebug(executor, devices, graph_json_str, dump_root)


class GraphModuleDebug(GraphModule):
    """A model that runs node by node and keeps what it saw."""

    def __init__(
        self, module: Module, device: Device | list[Device], graph_json_str: str, dump_root: str | None = None
    ) -> None:
        super().__init__(module)
        if not isinstance(module, NodeOperations):
            raise failure("TypeError", f"a {type(module).__name__} does not run node by node")
        self._nodes: NodeOperations = module
        self._device = get_device(module, device)[0]
        self._graph = json.loads(graph_json_str)
        self._dump_root = Path(dump_root) if dump_root else Path(tempfile.mkdtemp(prefix="tvmdbg_"))
        place = f"{self._device.kind}_{self._device.device_id}".upper()
        self._dump_path = self._dump_root / f"_tvmdbg_device_{place}"
        self._dump_path.mkdir(parents=True, exist_ok=True)
        self.debug_datum = DebugResult(self._graph, self._dump_path)
        self.runs: list[NodeRun] = []
        self.outputs: dict[str, NDArray] = {}

    @property
    def dump_path(self) -> str:
        """The folder of the files."""
        return os.fspath(self._dump_path)

    def _operators(self) -> list[tuple[int, dict[str, Any]]]:
        """The nodes that call a function, with their positions."""
        nodes = enumerate(self._graph["nodes"])
        return [
            (index, node)
            for index, node in nodes
            if node["op"] != "null" and node["attrs"]["func_name"] != "__nop"
        ]

    def _execute(self, keep_outputs: bool) -> None:
        self.runs, self.outputs = [], {}
        begin = 0.0
        for index, node in self._operators():
            seconds = self._nodes.run_node_timed(index)
            self.runs.append(NodeRun(index, node["name"], node["attrs"]["func_name"], begin, seconds))
            begin += seconds
            if keep_outputs:
                for output in range(int(node["attrs"].get("num_outputs", "1"))):
                    # Copied at once: a later node may use the same memory.
                    self.outputs[f"{node['name']}____{output}"] = array(
                        self._nodes.node_output(index, output).numpy()
                    )

    def run(self, **input_dict: Any) -> None:
        """Runs the model, keeps every node's output and writes the files."""
        self.set_input(**input_dict)
        self._refuse_misspelt()
        self._execute(keep_outputs=True)
        self.debug_datum.note(self.runs, self.outputs)

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[float]:
        """The mean time of every node of the graph in milliseconds; zero for those that call no function."""
        pauses = (limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        times = [0.0] * len(self._graph["nodes"])
        for index, _ in self._operators():
            times[index] = self.run_individual_node(index, number, repeat, min_repeat_ms, *pauses).mean * 1e3
        return times

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """The times of one node of the graph in seconds; zero if it calls no function."""
        if index not in dict(self._operators()):
            return BenchmarkResult([0.0] * repeat)
        return in_groups(
            lambda repeats: self._nodes.time_node(index, number, repeats, min_repeat_ms),
            repeat,
            cooldown_interval_ms,
            repeats_to_cooldown,
            limit_zero_time_iterations,
        )

    def profile(self, collectors: object = None, **input_dict: Any) -> Report:
        """Runs the model once to warm up and once to measure; the times of all nodes."""
        self.set_input(**input_dict)
        self.module.run()
        self._execute(keep_outputs=False)
        return Report(self.runs)

    def exit(self) -> None:
        """Removes the files that ``run`` has written, and their folders if nothing else is in them."""
        for name in (GRAPH_DUMP_FILE_NAME, CHROME_TRACE_FILE_NAME, OUTPUT_TENSORS_FILE_NAME):
            (self._dump_path / name).unlink(missing_ok=True)
        for folder in (self._dump_path, self._dump_root):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
