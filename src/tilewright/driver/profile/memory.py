"""The contents of a graph's arena, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    nodes = parsed["nodes"]
    blocks = tuple(_blocks(parsed))
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


@dataclass
class _Part:
    """Bytes of a storage that are written together, and the steps of their use."""

    start: int
    end: int
    first: int
    last: int
    name: str


def _blocks(parsed: dict[str, Any]) -> Iterator[Block]:
    """The memory that nodes write, by the graph's plan. A storage that is written in parts has a block for each."""
    nodes, attributes = parsed["nodes"], parsed["attrs"]
    tensors = GraphTensors(parsed)
    storages = attributes["storage_id"][1]
    inside = attributes.get("tensor_offset", ["", [0] * len(storages)])[1]
    offsets = attributes.get("storage_offset", ["", []])[1]
    parts: dict[int, list[_Part]] = {}

    def place(node: int, output: int) -> tuple[int, int, int]:
        """The storage of a tensor, and where it begins and ends there."""
        entry = tensors.entry(node, output)
        return storages[entry], inside[entry], inside[entry] + tensors.size_bytes(node, output)

    def use(step: int, storage: int, start: int, end: int) -> list[_Part]:
        """The parts that some bytes are in, needed at this step too."""
        met = [part for part in parts.get(storage, ()) if part.start < end and start < part.end]
        for part in met:
            part.last = step
        return met

    for index, node in enumerate(nodes):
        for source, output, *_ in node["inputs"]:
            use(index, *place(source, output))
        if node["op"] == "null" or node["attrs"]["func_name"] == NOTHING_TO_RUN:
            continue
        for output in range(int(node["attrs"].get("num_outputs", "1"))):
            storage, start, end = place(index, output)
            met = use(index, storage, start, end)
            if met:
                # It is written over: the memory is one block for both.
                met[0].start, met[0].end = min(met[0].start, start), max(met[0].end, end)
            else:
                parts.setdefault(storage, []).append(_Part(start, end, index, index, node["name"]))
    for source, output, *_ in parsed["heads"]:
        use(len(nodes) - 1, *place(source, output))
    fixed = {storages[tensors.entry(index, 0)] for index, node in enumerate(nodes) if node["op"] == "null"}
    for storage, found in parts.items():
        if storage in fixed or storage >= len(offsets):
            continue
        for part in found:
            size = part.end - part.start
            size = rounded(size) if len(found) == 1 else size
            yield Block(offsets[storage] + part.start, size, part.first, part.last, part.name)
