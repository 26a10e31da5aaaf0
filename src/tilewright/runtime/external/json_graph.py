"""The JSON form of a part of a model: inputs, constants and calls of operators in order.

The text has the keys that TVM's JSON code generators write: ``nodes``, ``arg_nodes``, ``heads`` and ``node_row_ptr``. A
node is an ``input``, a ``const`` or a ``kernel``; its ``inputs`` are triples (node, output, 0), and its ``attrs`` have
the shapes and data types of its results beside what the operator needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from tilewright.runtime.failure import failure

KINDS = ("input", "const", "kernel")


@dataclass(eq=False)
class JSONNode:
    """An input, a constant, or a call of an operator or composite function. ``inputs`` are pairs (node, output)."""

    op: str
    name: str
    shapes: list[list[int]]
    dtypes: list[str]
    inputs: list[tuple[int, int]] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For the text."""
        described = {"num_outputs": len(self.shapes), "shape": self.shapes, "dtype": self.dtypes}
        made: dict[str, Any] = {"op": self.op, "name": self.name, "attrs": {**self.attrs, **described}}
        if self.op == "kernel":
            made["inputs"] = [[node, output, 0] for node, output in self.inputs]
        return made


@dataclass(eq=False)
class JSONGraph:
    """A part of a model under the name by which it is called. ``outputs`` are pairs (node, output)."""

    symbol: str
    nodes: list[JSONNode] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def inputs(self) -> list[int]:
        """The nodes that the caller gives, in order."""
        return [number for number, node in enumerate(self.nodes) if node.op == "input"]

    @property
    def kernels(self) -> list[JSONNode]:
        """The calls in order."""
        return [node for node in self.nodes if node.op == "kernel"]

    def dumps(self) -> str:
        """The text."""
        counts = [len(node.shapes) for node in self.nodes]
        return json.dumps(
            {
                "symbol": self.symbol,
                "nodes": [node.as_json() for node in self.nodes],
                "arg_nodes": [number for number, node in enumerate(self.nodes) if node.op != "kernel"],
                "heads": [[node, output, 0] for node, output in self.outputs],
                "node_row_ptr": list(accumulate(counts, initial=0)),
            }
        )

    @classmethod
    def loads(cls, text: str | bytes, what: str = "the JSON form") -> JSONGraph:
        """The graph of a text; an error, in which it is called ``what``, if it is damaged."""
        try:
            root = json.loads(text)
            graph = cls(str(root["symbol"]))
            for node in root["nodes"]:
                graph.nodes.append(_node(node, len(graph.nodes)))
            graph.outputs = [(int(head[0]), int(head[1])) for head in root["heads"]]
            graph.check()
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise failure("ValueError", f"{what} is damaged: {error}") from error
        return graph

    def check(self) -> None:
        """A ``ValueError`` unless each node uses results of earlier ones."""
        for number, node in enumerate(self.nodes):
            self._check_entries(node.inputs, number, f"node {number} ({node.name})")
        self._check_entries(self.outputs, len(self.nodes), "the list of results")

    def _check_entries(self, entries: list[tuple[int, int]], before: int, what: str) -> None:
        for node, output in entries:
            if not 0 <= node < before or not 0 <= output < len(self.nodes[node].shapes):
                raise ValueError(f"{what} uses ({node}, {output}), which no earlier node gives")


def _node(given: Mapping[str, Any], number: int) -> JSONNode:
    attrs = dict(given["attrs"])
    attrs.pop("num_outputs", None)
    shapes = [[int(extent) for extent in shape] for shape in attrs.pop("shape")]
    dtypes = [str(dtype) for dtype in attrs.pop("dtype")]
    if given["op"] not in KINDS or len(shapes) != len(dtypes):
        raise ValueError(f"node {number} is a {given['op']!r} of {len(shapes)} shapes, {len(dtypes)} types")
    inputs = [(int(entry[0]), int(entry[1])) for entry in given.get("inputs", ())]
    return JSONNode(str(given["op"]), str(given["name"]), shapes, dtypes, inputs, attrs)
