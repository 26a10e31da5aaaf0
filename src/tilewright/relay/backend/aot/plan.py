"""The memory plan of a graph, made before it runs.

There are three regions, as in a bundle for a bare machine: *constants* (the parameters), *inputs and outputs* (memory
of the caller, tensor by tensor), and the *workspace*: the arena of the memory plan, with every tensor in between and
the scratch memory of each kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tilewright.relay.backend.graph import Entry, ExecutorGraph, byte_size
from tilewright.relay.backend.memory_plan import plan_graph_memory
from tilewright.relay.backend.places import results
from tilewright.support.arena import rounded


class Region(Enum):
    """The owner of the memory of a tensor."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    WORKSPACE = "workspace"


@dataclass(frozen=True)
class Place:
    """The number of an input or output and bytes from its start, or bytes from the start of the constants or the
    workspace."""

    region: Region
    position: int
    offset: int = 0

    def moved(self, distance: int) -> Place:
        """The place so many bytes further on."""
        if self.region in (Region.CONSTANT, Region.WORKSPACE):
            return Place(self.region, self.position + distance)
        return Place(self.region, self.position, self.offset + distance)


@dataclass(frozen=True)
class MemoryPlan:
    """The place of every tensor, of every node's scratch memory, and the sizes in bytes."""

    places: Mapping[Entry, Place]
    scratch: Mapping[int, int]
    """For nodes whose kernels need scratch memory: where in the workspace."""
    copies: tuple[tuple[Entry, int], ...]
    """Outputs that no kernel writes: the tensor to copy when all has run, and the output's number."""
    inputs: tuple[int, ...]
    """The nodes that the caller gives values for."""
    constants: Mapping[int, int]
    """The nodes that are parameters, with their places among the constants."""
    constants_size: int
    workspace_size: int


def plan_memory(graph: ExecutorGraph, scratch: Mapping[int, int]) -> MemoryPlan:
    """The plan of a graph; ``scratch`` has the bytes that nodes' kernels need."""
    memory = plan_graph_memory(graph, scratch, caller_has_outputs=True)
    constants: dict[int, int] = {}
    constants_size = 0
    for number, node in enumerate(graph.nodes):
        if node.value is not None:
            constants[number] = constants_size
            constants_size += rounded(max(1, byte_size(node.outputs[0])))
    inputs = graph.inputs
    # Storages of the caller's; all others are in the workspace.
    regions = {storage: Place(Region.OUTPUT, number) for storage, number in memory.caller_storages.items()}
    for number, offset in constants.items():
        regions[memory.storage_of[Entry(number)]] = Place(Region.CONSTANT, offset)
    for position, number in enumerate(inputs):
        regions[memory.storage_of[Entry(number)]] = Place(Region.INPUT, position)
    places = {}
    for number, node in enumerate(graph.nodes):
        for entry in results(number, node):
            storage = memory.storage_of[entry]
            start = regions.get(storage) or Place(Region.WORKSPACE, memory.offsets[storage])
            places[entry] = start.moved(memory.offset_of[entry])
    copies = tuple(
        (entry, number)
        for number, entry in enumerate(graph.outputs)
        if places[entry] != Place(Region.OUTPUT, number)
    )
    # A tensor without elements has an address too.
    needed = rounded(1) if any(place.region is Region.WORKSPACE for place in places.values()) else 0
    return MemoryPlan(
        places,
        memory.scratch,
        copies,
        tuple(inputs),
        constants,
        constants_size,
        max(memory.arena_bytes, needed),
    )
