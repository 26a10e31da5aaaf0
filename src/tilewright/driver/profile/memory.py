"""What lies in the arena of a graph, step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tilewright.driver.profile.kernels import NOTHING_TO_RUN, GraphTensors
from tilewright.support.arena import rounded


@dataclass(frozen=True)
class Block:
    """A piece of the arena, and the steps (numbers of nodes) from which and until which it is in use."""

    offset: int
    size_bytes: int
    first: int
    last: int
    name: str


@dataclass(frozen=True)
class MemoryProfile:
    """The arena over one run. ``live_bytes`` has one number a step: what is in use while it runs."""

    arena_bytes: int
    parameter_bytes: int
    blocks: tuple[Block, ...]
    steps: tuple[int, ...]
    live_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """The most that is in use at once."""
        return max(self.live_bytes, default=0)


def memory_profile(graph: str, arena_bytes: int, parameter_bytes: int) -> MemoryProfile:
    """The memory of a graph in the executor's JSON. A graph that gives no places has no blocks."""
    parsed = json.loads(graph)
    nodes, attributes = parsed["nodes"], parsed["attrs"]
    tensors = GraphTensors(parsed)
    storages = attributes["storage_id"][1]
    offsets = attributes.get("storage_offset", ["", []])[1]
    sizes: dict[int, int] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    names: dict[int, str] = {}
    fixed: set[int] = set()
    for index, node in enumerate(nodes):
        for source, output, *_ in node["inputs"]:
            last[storages[tensors.entry(source, output)]] = index
        for output in range(int(node.get("attrs", {}).get("num_outputs", "1"))):
            storage = storages[tensors.entry(index, output)]
            if node["op"] == "null":
                fixed.add(storage)
            sizes[storage] = max(sizes.get(storage, 0), tensors.size_bytes(index, output))
            first.setdefault(storage, index)
            names.setdefault(storage, node["name"])
            last[storage] = max(last.get(storage, index), index)
    for source, output, *_ in parsed["heads"]:
        last[storages[tensors.entry(source, output)]] = len(nodes) - 1
    blocks = tuple(
        Block(offsets[storage], rounded(size), first[storage], last[storage], names[storage])
        for storage, size in sizes.items()
        if storage not in fixed and storage < len(offsets)
    )
    steps = tuple(
        index
        for index, node in enumerate(nodes)
        if node["op"] != "null" and node["attrs"]["func_name"] != NOTHING_TO_RUN
    )
    changes = [0] * (len(nodes) + 1)
    for block in blocks:
        changes[block.first] += block.size_bytes
        changes[block.last + 1] -= block.size_bytes
    live, now = [], 0
    for change in changes:
        now += change
        live.append(now)
    return MemoryProfile(arena_bytes, parameter_bytes, blocks, steps, tuple(live[step] for step in steps))
