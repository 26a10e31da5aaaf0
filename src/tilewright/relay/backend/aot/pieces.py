"""Which tensors of a graph lie in one piece of memory: views, what they show, and what is joined without a copy.

Nodes that run nothing say which; ``Graph.offsets`` says where in the piece each of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.relay.backend.aot.graph import NO_OPERATION, Graph, GraphNode
from tilewright.support.arena import Request
from tilewright.support.errors import ModelError


@dataclass
class Pieces:
    """For each tensor the number of its piece and where it begins in it; for each piece its size."""

    graph: Graph
    number: list[int]
    offset: list[int]
    sizes: dict[int, int] = field(default_factory=dict)

    def range_of(self, tensor: int) -> range:
        """The bytes of a tensor in its piece: at least one, so that a tensor without elements has a place too."""
        return range(self.offset[tensor], self.offset[tensor] + max(1, self.graph.tensors[tensor].num_bytes))

    def lives(self, copied: Sequence[int]) -> dict[int, list[Request]]:
        """For each piece what is written to it, from the step that writes it to the last that reads any of it; those
        in ``copied`` are read after the last step."""
        parts: dict[int, list[tuple[int, int]]] = {}
        last: dict[int, int] = {}

        def read(tensor: int, step: int) -> None:
            for written, _ in parts[self.number[tensor]]:
                if _meet(self.range_of(written), self.range_of(tensor)):
                    last[written] = step

        for step, node in enumerate(self.graph.nodes):
            if node.function == NO_OPERATION:
                continue
            for tensor in node.inputs:
                read(tensor, step)
            for tensor in node.outputs:
                before = parts.setdefault(self.number[tensor], [])
                if any(_meet(self.range_of(written), self.range_of(tensor)) for written, _ in before):
                    raise ModelError(f"the graph's node {node.name!r} writes where another tensor lies")
                before.append((tensor, step))
                last[tensor] = step
        for tensor in copied:
            read(tensor, len(self.graph.nodes))
        return {
            piece: [
                Request(len(self.range_of(tensor)), step, last[tensor], self.offset[tensor])
                for tensor, step in written
            ]
            for piece, written in parts.items()
        }


def find_pieces(graph: Graph) -> Pieces:
    """The pieces of a graph; an error where a node that runs nothing would have to."""
    number = list(range(len(graph.tensors)))
    members = {tensor: [tensor] for tensor in number}
    for node in graph.nodes:
        if node.function == NO_OPERATION:
            _check(graph, node)
            for tensor in (*node.outputs, *_sources(graph, node)):
                into, taken = number[node.outputs[0]], number[tensor]
                if into != taken:
                    for member in members[taken]:
                        number[member] = into
                    members[into] += members.pop(taken)
    found = Pieces(graph, number, [0] * len(number))
    for piece, tensors in members.items():
        start = min(graph.offset(tensor) for tensor in tensors)
        for tensor in tensors:
            found.offset[tensor] = graph.offset(tensor) - start
        found.sizes[piece] = max(found.offset[one] + graph.tensors[one].num_bytes for one in tensors)
    return found


def _sources(graph: Graph, node: GraphNode) -> list[int]:
    """The arguments that lie where the results do: all that are joined, or those of the results' numbers."""
    if _is_join(graph, node):
        return list(node.inputs)
    last = len(node.inputs) - 1
    return [node.inputs[position if position <= last else 0] for position in range(len(node.outputs))]


def _is_join(graph: Graph, node: GraphNode) -> bool:
    sizes = [graph.tensors[tensor].num_bytes for tensor in node.inputs]
    return len(sizes) > 1 and len(node.outputs) == 1 and sizes[0] < graph.tensors[node.outputs[0]].num_bytes


def _check(graph: Graph, node: GraphNode) -> None:
    what = f"the graph's node {node.name!r}"
    if not node.inputs:
        raise ModelError(f"{what} renames a tensor, and has none")
    if _is_join(graph, node):
        start = at = graph.offset(node.outputs[0])
        for tensor in node.inputs:
            if graph.offset(tensor) != at:
                raise ModelError(f"{what} joins tensors that do not follow one another in memory")
            at += graph.tensors[tensor].num_bytes
        if at - start != graph.tensors[node.outputs[0]].num_bytes:
            raise ModelError(f"{what} joins tensors to one of another size")
        return
    for tensor, source in zip(node.outputs, _sources(graph, node), strict=True):
        size, whole = graph.tensors[tensor].num_bytes, graph.tensors[source].num_bytes
        distance = graph.offset(tensor) - graph.offset(source)
        if not graph.offsets and size != whole:
            raise ModelError(f"{what} renames a tensor to one of another size")
        if distance < 0 or distance + size > whole:
            raise ModelError(f"{what} shows a part of a tensor that is not inside of it")


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop
