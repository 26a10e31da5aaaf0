"""Where every tensor of a graph lies, and how much memory that takes.

Tensors that share memory by their nature (a reshape and what it reshapes, an elementwise result and the argument that
it overwrites) have one storage. Storages get places in one arena by their lifetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.ir.tensor_type import TensorType
from tilewright.relay.backend.graph import Entry, ExecutorGraph, in_place_parameters
from tilewright.support.arena import Request, largest_live_set, plan_arena, rounded


@dataclass(frozen=True)
class GraphMemory:
    """The storage of every tensor, the offset of every storage, and what that comes to in bytes."""

    storage_of: Mapping[Entry, int]
    offsets: list[int]
    arena_bytes: int
    largest_live_set: int
    parameter_bytes: int
    tensors_bytes: int
    """What the intermediate tensors would take, each in memory of its own."""

    def report(self) -> str:
        """The figures in a sentence."""
        return (
            f"intermediate tensors {self.tensors_bytes:,} bytes in an arena of {self.arena_bytes:,} "
            f"(largest live set {self.largest_live_set:,}), parameters {self.parameter_bytes:,}"
        )


def byte_size(kind: TensorType) -> int:
    """The bytes of a tensor of constant shape."""
    total = 1
    for extent in kind.concrete_shape:
        total *= extent
    # An element takes whole bytes: one for a bool.
    return total * ((kind.dtype.bits * kind.dtype.lanes + 7) // 8)


def plan_graph_memory(graph: ExecutorGraph) -> GraphMemory:
    """The plan of a graph."""
    last_use = _last_uses(graph)
    storage_of: dict[Entry, int] = {}
    sizes: list[int] = []
    first: list[int] = []
    last: list[int] = []
    is_fixed: list[bool] = []

    def new_storage(step: int, fixed: bool) -> int:
        sizes.append(0)
        first.append(step)
        last.append(step)
        is_fixed.append(fixed)
        return len(sizes) - 1

    for step, node in enumerate(graph.nodes):
        for output, kind in enumerate(node.outputs):
            entry = Entry(step, output)
            if node.is_view:
                storage = storage_of[node.inputs[0]]
            else:
                shared = _overwritten(graph, step, storage_of, last, is_fixed) if output == 0 else None
                storage = shared if shared is not None else new_storage(step, node.kernel is None)
            storage_of[entry] = storage
            sizes[storage] = max(sizes[storage], byte_size(kind))
            last[storage] = max(last[storage], step, last_use.get(entry, step))
    requests = [
        Request(0 if is_fixed[number] else sizes[number], first[number], last[number])
        for number in range(len(sizes))
    ]
    moving = [number for number in range(len(sizes)) if not is_fixed[number]]
    placed, arena = plan_arena([requests[number] for number in moving])
    offsets = [0] * len(sizes)
    for number, offset in zip(moving, placed, strict=True):
        offsets[number] = offset
    return GraphMemory(
        storage_of,
        offsets,
        arena,
        largest_live_set([requests[number] for number in moving]),
        sum(byte_size(node.outputs[0]) for node in graph.nodes if node.value is not None),
        sum(
            rounded(byte_size(kind))
            for node in graph.nodes
            if node.kernel is not None and not node.is_view
            for kind in node.outputs
        ),
    )


def _last_uses(graph: ExecutorGraph) -> dict[Entry, int]:
    """The last step that reads each tensor; results of the graph are read after the last step."""
    found: dict[Entry, int] = {}
    for step, node in enumerate(graph.nodes):
        for entry in node.inputs:
            found[entry] = step
    for entry in graph.outputs:
        found[entry] = len(graph.nodes)
    return found


def _overwritten(
    graph: ExecutorGraph, step: int, storage_of: Mapping[Entry, int], last: list[int], is_fixed: list[bool]
) -> int | None:
    """The storage of an argument that an elementwise kernel may overwrite, because nothing reads it later."""
    node = graph.nodes[step]
    if node.function is None or len(node.outputs) != 1 or len(node.inputs) != len(node.function.params):
        return None
    for position in in_place_parameters(node.function):
        entry = node.inputs[position]
        storage = storage_of[entry]
        if is_fixed[storage] or last[storage] > step:
            continue
        # Another argument in the same storage would be overwritten while it is still read in another shape.
        if sum(storage_of[other] == storage for other in node.inputs) == 1:
            return storage
    return None
