"""Where every tensor of a graph lies, and how much memory that takes.

Tensors that share memory by their nature (a view and what it shows, a concatenation and its operands, an elementwise
result and the argument that it overwrites) have one storage, each at its own offset in it. Storages get places in one
arena by the lifetimes of their parts: memory that is not written yet, or no longer read, can be reused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.relay.backend.graph import Entry, ExecutorGraph, GraphNode, byte_size
from tilewright.relay.backend.in_place import (
    Pair,
    Step,
    in_place_parameters,
    named_pairs,
    overwriting_steps,
)
from tilewright.relay.backend.places import Places, results, strict_entries
from tilewright.relay.backend.te_compiler import operator_names
from tilewright.relay.output_names import unnamed_output
from tilewright.support.arena import Request, largest_live_blocks, plan_blocks, rounded


@dataclass(frozen=True)
class GraphMemory:
    """The storage of every tensor, the offset of every storage, and the sizes in bytes."""

    storage_of: Mapping[Entry, int]
    offset_of: Mapping[Entry, int]
    """Where in its storage a tensor begins."""
    offsets: list[int]
    arenas: Mapping[int, int]
    """The bytes of the arena on each kind of device."""
    largest_live_set: int
    parameter_bytes: int
    tensors_bytes: int
    """What the intermediate tensors would take, each in memory of its own."""
    caller_storages: Mapping[int, int] = field(default_factory=dict)
    """Storages that are not in the arena but in the caller's memory: those of outputs, with the output's number."""
    scratch: Mapping[int, int] = field(default_factory=dict)
    """For nodes whose kernels need scratch memory: its offset in the arena."""
    updated_inputs: Sequence[int] = ()
    """The inputs whose memory outputs take, by their nodes."""

    @property
    def arena_bytes(self) -> int:
        """The bytes of all arenas."""
        return sum(self.arenas.values())

    def report(self) -> str:
        """The sizes in one sentence."""
        return (
            f"intermediate tensors {self.tensors_bytes:,} bytes in an arena of {self.arena_bytes:,} "
            f"(largest live set {self.largest_live_set:,}), parameters {self.parameter_bytes:,}"
        )


@dataclass
class _Part:
    """What a kernel writes: its place in a storage, and the first and last step at which it is needed."""

    offset: int
    size: int
    first: int
    last: int


def plan_graph_memory(
    graph: ExecutorGraph,
    scratch: Mapping[int, int] | None = None,
    caller_has_outputs: bool = False,
    in_place: Mapping[str, str] | None = None,
) -> GraphMemory:
    """The plan of a graph. ``scratch`` has the bytes of memory that the kernels of some nodes need while they run.
    Where the caller has memory for the outputs, those that are not a part of a larger tensor lie there. ``in_place``
    has outputs that take the memory of an input, by the input's name."""
    planner = _Planner(graph)
    planner.update_inputs(in_place or {})
    planner.overwrite_arguments()
    if caller_has_outputs:
        planner.hand_out_outputs()
    return planner.plan(scratch or {})


class _Planner:
    def __init__(self, graph: ExecutorGraph) -> None:
        self.graph = graph
        self.places = Places()
        self.parts: dict[Entry, list[_Part]] = {}
        self.caller: dict[Entry, int] = {}
        self.updated: list[int] = []
        strict = strict_entries(graph)
        for step, node in enumerate(graph.nodes):
            self.places.add(step, node, any(entry in strict for entry in results(step, node)))
            self.places.settle(step, node)
        for step, node in enumerate(graph.nodes):
            if node.kernel is None or node.is_view:
                continue
            for entry in results(step, node):
                root, offset = self.places.find(entry)
                part = _Part(offset, self.places.sizes[entry], step, step)
                self.parts.setdefault(root, []).append(part)
        for entry, step in _last_uses(graph).items():
            for part in self._parts_of(entry):
                part.last = max(part.last, step)

    def _parts_of(self, entry: Entry) -> list[_Part]:
        """The parts of a storage that a tensor is in, or that are in it."""
        root, start, end = self.places.range_of(entry)
        return [
            part for part in self.parts.get(root, ()) if part.offset < end and start < part.offset + part.size
        ]

    def update_inputs(self, in_place: Mapping[str, str]) -> None:
        """Put outputs into the memory of inputs, or say why that cannot be."""
        if not in_place:
            return
        graph = self.graph
        inputs = {graph.nodes[one].name: (Entry(one), graph.type_of(Entry(one))) for one in graph.inputs}
        names = graph.output_names or [unnamed_output(place) for place in range(len(graph.outputs))]
        outputs = {
            name: (entry, graph.type_of(entry)) for name, entry in zip(names, graph.outputs, strict=True)
        }
        steps = [_step(number, node) for number, node in enumerate(graph.nodes)]
        for pair in named_pairs(in_place, inputs, outputs):
            path = overwriting_steps(steps, pair, graph.outputs)
            for number, _ in path:
                self._put(Entry(number), pair)
            assert isinstance(pair.input, Entry) and isinstance(pair.output, Entry)
            if self.places.find(pair.output) != (pair.input, 0):
                raise pair.refuse("it is only a part of it")
            self.updated.append(pair.input.node)

    def _put(self, result: Entry, pair: Pair) -> None:
        """Put the result of a kernel into the memory of an input."""
        assert isinstance(pair.input, Entry)
        if self.places.find(result) != (result, 0):
            raise pair.refuse("it is joined with other tensors")
        self.places.attach(result, pair.input, 0)
        del self.parts[result]

    def overwrite_arguments(self) -> None:
        """Let elementwise kernels overwrite an argument that is not read later."""
        for step, node in enumerate(self.graph.nodes):
            if (
                node.function is None
                or len(node.outputs) != 1
                or len(node.inputs) != len(node.function.params)
            ):
                continue
            for position in in_place_parameters(node.function, node.device):
                if self._overwrite(step, node, node.inputs[position]):
                    break

    def _overwrite(self, step: int, node: GraphNode, argument: Entry) -> bool:
        """Put the result of a node into the memory of an argument, or the argument where the result has to be."""
        places = self.places
        root, start, end = places.range_of(argument)
        before = self._parts_of(argument)
        if root in places.fixed or not before or any(part.last > step for part in before):
            return False
        # Another argument in the same bytes would be overwritten while it is still read in another shape.
        ranges = [places.range_of(entry) for entry in node.inputs]
        if sum(other == root and first < end and start < last for other, first, last in ranges) != 1:
            return False
        result = Entry(step)
        into, inside = places.find(result)
        if into in places.fixed:
            return False
        if into == result and places.fits(result, start):
            places.attach(result, argument, 0)
            (made,) = self.parts.pop(result)
            for part in before:
                part.last = max(part.last, made.last)
            return True
        is_whole = len(self.parts[root]) == 1 and places.sizes[root] == end - start
        if into not in (result, root) and is_whole and places.fits(root, inside):
            (made,) = self._parts_of(result)
            made.first = min(made.first, self.parts.pop(root)[0].first)
            places.attach(root, result, 0)
            return True
        return False

    def hand_out_outputs(self) -> None:
        """Put each output that has a storage to itself, and is in no earlier output's, into the caller's memory."""
        for number, entry in enumerate(self.graph.outputs):
            root, _ = self.places.find(entry)
            whole = self.places.sizes[root] == self.places.sizes[entry]
            if root not in self.places.fixed and root not in self.caller and whole:
                self.caller[root] = number

    def plan(self, scratch: Mapping[int, int]) -> GraphMemory:
        """The plan, once it is known which tensors share memory."""
        numbers: dict[Entry, int] = {}
        storage_of: dict[Entry, int] = {}
        offset_of: dict[Entry, int] = {}
        for step, node in enumerate(self.graph.nodes):
            for entry in results(step, node):
                root, offset = self.places.find(entry)
                storage_of[entry] = numbers.setdefault(root, len(numbers))
                offset_of[entry] = offset
        nodes = self.graph.nodes
        offsets = [0] * len(numbers)
        arenas: dict[int, int] = {}
        scratch_offsets: dict[int, int] = {}
        live = 0
        for device in self.graph.devices:
            moving = [
                root for root in self.parts if root not in self.caller and nodes[root.node].device == device
            ]
            needing = [step for step in scratch if nodes[step].device == device]
            blocks = [
                [Request(part.size, part.first, part.last, part.offset) for part in self.parts[root]]
                for root in moving
            ]
            blocks += [[Request(scratch[step], step, step)] for step in needing]
            placed, arenas[device] = plan_blocks(blocks)
            for root, offset in zip(moving, placed, strict=False):
                offsets[numbers[root]] = offset
            scratch_offsets |= zip(needing, placed[len(moving) :], strict=True)
            live += largest_live_blocks(blocks)
        return GraphMemory(
            storage_of,
            offset_of,
            offsets,
            arenas,
            live,
            sum(byte_size(node.outputs[0]) for node in nodes if node.value is not None),
            sum(
                rounded(byte_size(kind))
                for node in nodes
                if node.kernel is not None and not node.is_view
                for kind in node.outputs
            ),
            {numbers[root]: number for root, number in self.caller.items()},
            scratch_offsets,
            self.updated,
        )


def _step(number: int, node: GraphNode) -> Step:
    if node.kernel is None:
        return Step(node.name)
    overwrites: list[int] = []
    if node.function is not None and len(node.inputs) == len(node.function.params):
        overwrites = in_place_parameters(node.function, node.device)
    is_part = node.is_view and node.view_offsets is not None
    name = node.name if node.function is None else " + ".join(operator_names(node.function)) or "copy"
    return Step(name, node.inputs, list(results(number, node)), overwrites, is_part)


def _last_uses(graph: ExecutorGraph) -> dict[Entry, int]:
    """The last step that reads each tensor; results of the graph are read after the last step."""
    found: dict[Entry, int] = {}
    for step, node in enumerate(graph.nodes):
        for entry in node.inputs:
            found[entry] = step
    for entry in graph.outputs:
        found[entry] = len(graph.nodes)
    return found
