"""Where everything of a graph lies in memory, decided before it runs.

There are three regions, as in a bundle for a bare machine: *constants* (the parameters), *inputs and outputs* (memory
of the caller, tensor by tensor), and the *workspace*: one arena with every tensor in between and the scratch memory
of each kernel. Two that are never needed at the same time share their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tilewright.relay.backend.aot.graph import Graph
from tilewright.relay.backend.aot.pieces import find_pieces
from tilewright.support.arena import Request, plan_blocks, rounded
from tilewright.support.errors import ModelError


class Region(Enum):
    """Whose memory a tensor lies in."""

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
    pieces = find_pieces(graph)
    places: dict[int, Place] = {}  # of pieces
    inputs: list[int] = []
    constants: dict[int, int] = {}
    constants_size = 0
    for number, node in enumerate(graph.nodes):
        if node.function is not None:
            continue
        if node.name in parameters:
            constants[number] = constants_size
            places[pieces.number[node.outputs[0]]] = Place(Region.CONSTANT, constants_size)
            constants_size += rounded(max(1, graph.tensors[node.outputs[0]].num_bytes))
        elif number not in graph.arguments:
            raise ModelError(f"the graph's node {node.name!r} is neither an input nor a parameter")
    for number in graph.arguments:
        if number not in constants:
            places[pieces.number[graph.nodes[number].outputs[0]]] = Place(Region.INPUT, len(inputs))
            inputs.append(number)
    copies = []
    for number, tensor in enumerate(graph.outputs):
        piece = pieces.number[tensor]
        # The caller has memory for this tensor, and not for what may lie around it.
        if piece in places or graph.tensors[tensor].num_bytes != pieces.sizes[piece]:
            copies.append((tensor, number))
        else:
            places[piece] = Place(Region.OUTPUT, number)
    lives = pieces.lives([tensor for tensor, _ in copies])
    waiting = [piece for piece in lives if piece not in places]
    blocks = [lives[piece] for piece in waiting]
    blocks += [[Request(size, node, node)] for node, size in scratch.items()]
    offsets, workspace_size = plan_blocks(blocks)
    for piece, offset in zip(waiting, offsets, strict=False):
        places[piece] = Place(Region.WORKSPACE, offset)
    return MemoryPlan(
        tuple(
            places[pieces.number[tensor]].moved(pieces.offset[tensor]) for tensor in range(len(graph.tensors))
        ),
        dict(zip(scratch, offsets[len(waiting) :], strict=True)),
        tuple(copies),
        tuple(inputs),
        constants,
        constants_size,
        workspace_size,
    )
