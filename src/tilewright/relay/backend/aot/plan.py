"""Where everything of a graph lies in memory, decided before it runs.

There are three regions, as in a bundle for a bare machine: *constants* (the parameters), *inputs and outputs* (memory
of the caller, tensor by tensor), and the *workspace*: one arena with every tensor in between and the scratch memory
of each kernel. Two that are never needed at the same time share their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tilewright.relay.backend.aot.graph import NO_OPERATION, Graph
from tilewright.support.arena import Request, plan_arena, rounded
from tilewright.support.errors import ModelError


class Region(Enum):
    """Whose memory a tensor lies in."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    WORKSPACE = "workspace"


@dataclass(frozen=True)
class Place:
    """The number of an input or output, or bytes from the start of the constants or the workspace."""

    region: Region
    position: int


@dataclass(frozen=True)
class MemoryPlan:
    """The place of every tensor, of every node's scratch memory, and the sizes in bytes."""

    tensors: tuple[Place, ...]
    scratch: Mapping[int, int]
    """For nodes whose kernels need scratch memory: where in the workspace."""
    copies: tuple[tuple[int, int], ...]
    """Outputs that no kernel writes: the tensor to copy when all has run, and the output's number."""
    inputs: tuple[int, ...]
    """The nodes that the caller gives values for."""
    constants: Mapping[int, int]
    """The nodes that are parameters, with their places among the constants."""
    constants_size: int
    workspace_size: int


def plan_memory(graph: Graph, parameters: Sequence[str], scratch: Mapping[int, int]) -> MemoryPlan:
    """The plan of a graph whose parameters have these names; ``scratch`` has the bytes that nodes' kernels need."""
    origin = _origins(graph)
    places: dict[int, Place] = {}
    inputs: list[int] = []
    constants: dict[int, int] = {}
    constants_size = 0
    for number, node in enumerate(graph.nodes):
        if node.function is not None:
            continue
        if node.name in parameters:
            constants[number] = constants_size
            places[node.outputs[0]] = Place(Region.CONSTANT, constants_size)
            constants_size += rounded(_size(graph, node.outputs[0]))
        elif number not in graph.arguments:
            raise ModelError(f"the graph's node {node.name!r} is neither an input nor a parameter")
    for number in graph.arguments:
        if number not in constants:
            places[graph.nodes[number].outputs[0]] = Place(Region.INPUT, len(inputs))
            inputs.append(number)
    copies = []
    for number, tensor in enumerate(graph.outputs):
        if origin[tensor] in places:
            copies.append((tensor, number))
        else:
            places[origin[tensor]] = Place(Region.OUTPUT, number)
    lives = _lives(graph, origin, [tensor for tensor, _ in copies])
    waiting = [tensor for tensor in lives if tensor not in places]
    requests = [Request(_size(graph, tensor), *lives[tensor]) for tensor in waiting]
    requests += [Request(size, node, node) for node, size in scratch.items()]
    offsets, workspace_size = plan_arena(requests)
    for tensor, offset in zip(waiting, offsets, strict=False):
        places[tensor] = Place(Region.WORKSPACE, offset)
    return MemoryPlan(
        tuple(places[origin[tensor]] for tensor in range(len(graph.tensors))),
        dict(zip(scratch, offsets[len(waiting) :], strict=True)),
        tuple(copies),
        tuple(inputs),
        constants,
        constants_size,
        workspace_size,
    )


def _size(graph: Graph, tensor: int) -> int:
    """The bytes to reserve: at least one, so that a tensor without elements has a place too."""
    return max(1, graph.tensors[tensor].num_bytes)


def _origins(graph: Graph) -> list[int]:
    """For each tensor, the one whose memory it is: its own, or through nodes that only rename, another's."""
    origin = list(range(len(graph.tensors)))
    for node in graph.nodes:
        if node.function != NO_OPERATION:
            continue
        for position, tensor in enumerate(node.outputs):
            if not node.inputs:
                raise ModelError(f"the graph's node {node.name!r} renames a tensor, and has none")
            source = origin[node.inputs[position if position < len(node.inputs) else 0]]
            if graph.tensors[tensor].num_bytes != graph.tensors[source].num_bytes:
                raise ModelError(f"the graph's node {node.name!r} renames a tensor to one of another size")
            origin[tensor] = source
    return origin


def _lives(graph: Graph, origin: Sequence[int], copied: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The steps from the one that makes a tensor to the last that reads it, for tensors with memory of their own."""
    lives: dict[int, tuple[int, int]] = {}
    for step, node in enumerate(graph.nodes):
        if node.function == NO_OPERATION:
            continue
        for tensor in node.inputs:
            lives[origin[tensor]] = (lives[origin[tensor]][0], step)
        for tensor in node.outputs:
            lives[tensor] = (step, step)
    for tensor in copied:
        lives[origin[tensor]] = (lives[origin[tensor]][0], len(graph.nodes))
    return lives
