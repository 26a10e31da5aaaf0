"""Loops of version 1: tensors enter a frame, are merged with those of the next round, and leave through exits.

A frame becomes one loop. Its variables are what its Merge nodes hold, and what enters and stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant, Var
from tilewright.relay.frontend.tensorflow.control_flow import looped
from tilewright.relay.frontend.tensorflow.tensorflow_node import TensorFlowNode
from tilewright.support.errors import ModelError

if TYPE_CHECKING:
    from tilewright.relay.frontend.tensorflow.importer import GraphImporter

_ENTERS = ("Enter", "RefEnter")


def _plain(reference: str) -> str:
    return reference.removeprefix("^").split(":")[0]


class Frame:
    """The nodes that make up a loop, each by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.enters: list[str] = []
        self.merges: list[str] = []
        self.entered: dict[str, str] = {}
        """The Enter of each Merge."""
        self.following: dict[str, str] = {}
        """What each Merge holds in the next round."""
        self.switches: dict[str, str] = {}
        """The Switch of each Merge."""
        self.exits: dict[str, str] = {}
        """The Merge of each Exit."""
        self.condition = ""


class Frames:
    """The loops of a graph."""

    def __init__(self, nodes: Mapping[str, Any]) -> None:
        self._nodes = nodes
        self._frames: dict[str, Frame] = {}
        self._of_exit: dict[str, Frame] = {}
        self._collect()

    def of_exit(self, name: str) -> Frame:
        """The loop that an Exit leaves."""
        if name not in self._of_exit:
            raise ModelError(f"the node {name!r} leaves no loop")
        return self._of_exit[name]

    def outside_of(self, name: str) -> list[str]:
        """The nodes outside of a loop that it depends on."""
        return [_plain(self._nodes[one].input[0]) for one in self.of_exit(name).enters]

    def _collect(self) -> None:
        frame_of: dict[str, Frame] = {}
        for node in self._nodes.values():
            if node.op in _ENTERS:
                name = node.attr["frame_name"].s.decode()
                frame = self._frames.setdefault(name, Frame(name))
                frame.enters.append(node.name)
                frame_of[node.name] = frame
        if not frame_of:
            return
        merge_of: dict[str, tuple[Frame, str]] = {}
        for node in self._nodes.values():
            if node.op not in ("Merge", "RefMerge"):
                continue
            sources = [_plain(one) for one in node.input if not one.startswith("^")]
            enters = [one for one in sources if one in frame_of]
            rounds = [one for one in sources if self._nodes[one].op.endswith("NextIteration")]
            if len(enters) == 1 and len(rounds) == 1:
                frame = frame_of[enters[0]]
                frame.merges.append(node.name)
                frame.entered[node.name] = enters[0]
                frame.following[node.name] = self._nodes[rounds[0]].input[0]
                merge_of[node.name] = frame, node.name
        switch_of: dict[str, tuple[Frame, str]] = {}
        for node in self._nodes.values():
            if node.op in ("Switch", "RefSwitch") and _plain(node.input[0]) in merge_of:
                test = self._nodes.get(_plain(node.input[1]))
                if test is not None and test.op == "LoopCond":
                    frame, merge = merge_of[_plain(node.input[0])]
                    frame.switches[merge] = node.name
                    frame.condition = str(test.input[0])
                    switch_of[node.name] = frame, merge
        for node in self._nodes.values():
            if node.op in ("Exit", "RefExit") and _plain(node.input[0]) in switch_of:
                frame, merge = switch_of[_plain(node.input[0])]
                frame.exits[node.name] = merge
                self._of_exit[node.name] = frame


def convert_loop(graph: GraphImporter, node: TensorFlowNode) -> None:
    """Convert the loop that an Exit leaves; all its exits get their values."""
    frame = graph.frames.of_exit(node.name)
    carried = [graph.value(graph.nodes[frame.entered[merge]].input[0]) for merge in frame.merges]
    fixed = [one for one in frame.enters if one not in frame.entered.values()]
    outside = {one: graph.value(graph.nodes[one].input[0]) for one in fixed}
    # What is computed outside is a variable as well, so that it is computed once.
    passed = [
        one
        for one in fixed
        if isinstance(outside[one], RelayExpr) and not isinstance(outside[one], (Constant, Var))
    ]

    def inside(values: list[Any]) -> GraphImporter:
        inner = graph.without_values()
        for merge, value in zip(frame.merges, values, strict=False):
            inner.define(merge, [value])
            inner.define(frame.switches.get(merge, f"{merge}/none"), [value, value])
        for one in fixed:
            inner.define(one, [outside[one]])
        for one, value in zip(passed, values[len(frame.merges) :], strict=True):
            inner.define(one, [value])
        return inner

    def test(values: list[Any]) -> Any:
        return inside(values).value(frame.condition)

    def body(values: list[Any]) -> list[Any]:
        inner = inside(values)
        following = [inner.value(frame.following[merge]) for merge in frame.merges]
        return following + values[len(frame.merges) :]

    final = looped(node, carried + [outside[one] for one in passed], test, body)
    results = dict(zip(frame.merges, final, strict=False))
    for exit_, merge in frame.exits.items():
        graph.define(exit_, [results[merge]])
