"""TVM's reader of TensorFlow models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tilewright.relay.frontend.tensorflow.reading import read_graph


class TFParser:
    """Reads the graph of a frozen file, or of a SavedModel's folder."""

    def __init__(self, model_dir: str | os.PathLike[str], outputs: Sequence[str] | None = None) -> None:
        self._model = model_dir
        self._outputs = None if outputs is None else [str(one).split(":")[0] for one in outputs]

    def parse(self) -> Any:
        """The graph, in which variables are constants; with ``outputs``, only what these nodes depend on."""
        graph = read_graph(self._model).graph
        if self._outputs is None:
            return graph
        needed = _needed({node.name: node for node in graph.node}, self._outputs)
        made = type(graph)()
        made.CopyFrom(graph)
        del made.node[:]
        made.node.extend(node for node in graph.node if node.name in needed)
        return made


def _needed(nodes: dict[str, Any], outputs: Sequence[str]) -> set[str]:
    found: set[str] = set()
    pending = list(outputs)
    while pending:
        name = pending.pop()
        if name in nodes and name not in found:
            found.add(name)
            pending += [one.removeprefix("^").split(":")[0] for one in nodes[name].input]
    return found
