"""The results of a run of the debug executor: a table of times, and the files that other tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.params import save_param_dict
from tilewright.runtime.profiling import NodeRun
from tilewright.support.cbuild import write_bytes

GRAPH_DUMP_FILE_NAME = "_tvmdbg_graph_dump.json"
CHROME_TRACE_FILE_NAME = "_tvmdbg_execution_trace.json"
OUTPUT_TENSORS_FILE_NAME = "output_tensors.params"

_HEADER = ("Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs")


class DebugResult:
    """The graph, which is written at once, and the times and outputs of its last run."""

    def __init__(self, graph: Mapping[str, Any], dump_path: Path) -> None:
        self._graph = graph
        self._dump_path = dump_path
        self._runs: dict[int, NodeRun] = {}
        self._outputs: Mapping[str, NDArray] = {}
        self.dump_graph_json()

    def note(self, runs: Sequence[NodeRun], outputs: Mapping[str, NDArray]) -> None:
        """Take a run in, and write all files."""
        self._runs = {run.node: run for run in runs}
        self._outputs = outputs
        self.dump_graph_json()
        self.dump_chrome_trace()
        self.dump_output_tensor()

    def get_graph_nodes(self) -> list[Any]:
        """The nodes of the graph."""
        return list(self._graph["nodes"])

    def get_graph_node_shapes(self) -> list[Any]:
        """The shape of every value of the graph."""
        return list(self._graph["attrs"]["shape"][1])

    def get_graph_node_output_num(self, node: Mapping[str, Any]) -> int:
        """How many values a node has."""
        return 1 if node["op"] == "null" else int(node["attrs"].get("num_outputs", "1"))

    def get_output_tensors(self) -> dict[str, NDArray]:
        """The outputs of the last run, by ``<node>____<which>``."""
        return dict(self._outputs)

    def dump_graph_json(self) -> None:
        """Write the graph, with the time of each node in microseconds."""
        nodes = [
            {**node, "microseconds": self._runs[index].seconds * 1e6 if index in self._runs else 0.0}
            for index, node in enumerate(self._graph["nodes"])
        ]
        text = json.dumps({**self._graph, "nodes": nodes}, indent=1)
        write_bytes(self._dump_path / GRAPH_DUMP_FILE_NAME, text.encode())

    def dump_chrome_trace(self) -> None:
        """Write a trace in which each node begins and ends; what calls no function takes no time."""
        events = []
        now = 0.0
        for index, node in enumerate(self._graph["nodes"]):
            run = self._runs.get(index)
            begin = now if run is None else run.begin_seconds * 1e6
            now = begin if run is None else begin + run.seconds * 1e6
            for phase, at in (("B", begin), ("E", now)):
                events.append({"ts": at, "ph": phase, "pid": 1, "tid": 1, "name": node["name"]})
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events})
        write_bytes(self._dump_path / CHROME_TRACE_FILE_NAME, text.encode())

    def dump_output_tensor(self) -> None:
        """Write the outputs as saved parameters."""
        write_bytes(self._dump_path / OUTPUT_TENSORS_FILE_NAME, bytes(save_param_dict(dict(self._outputs))))

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """A table of the nodes that ran, the slowest first unless asked otherwise, and their total."""
        total = sum(run.seconds for run in self._runs.values())
        runs = list(self._runs.values())
        if sort_by_time:
            runs.sort(key=lambda run: -run.seconds)
        rows: list[Sequence[str]] = [_HEADER, ["-" * len(title) for title in _HEADER]]
        for run in runs:
            node = self._graph["nodes"][run.node]
            count = self.get_graph_node_output_num(node)
            first = int(self._graph["node_row_ptr"][run.node])
            for shape in self.get_graph_node_shapes()[first : first + count]:
                share = 100 * run.seconds / total if total else 0.0
                rows.append(
                    [
                        run.name,
                        run.function,
                        f"{run.seconds * 1e6:.3f}",
                        f"{share:.3f}",
                        str(tuple(shape)),
                        str(len(node["inputs"])),
                        str(count),
                    ]
                )
        rows.append(["Total_time", "-", f"{total * 1e6:.3f}", *["-"] * (len(_HEADER) - 3)])
        widths = [max(len(row[column]) for row in rows) + 2 for column in range(len(_HEADER))]
        return "\n".join("".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows)

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print the table."""
        print(self.get_debug_result(sort_by_time))  # noqa: T201
