"""The memory of a graph's intermediate tensors, from its text: what the executor allocates, without running it."""

from __future__ import annotations

import json
from math import prod
from typing import Any

from tilewright.support.arena import rounded
from tilewright.support.dtype import DataType


def arena_bytes(graph: str) -> int:
    """The bytes of the arenas of all devices."""
    parsed = json.loads(graph)
    attributes = {name: values for name, (_, values) in parsed["attrs"].items()}
    storages: list[int] = attributes["storage_id"]
    tensor_offsets = attributes.get("tensor_offset") or [0] * len(storages)
    devices = attributes.get("device_index") or [0] * len(storages)
    sizes: dict[int, int] = {}
    for entry, storage in enumerate(storages):
        end = tensor_offsets[entry] + _bytes(attributes["shape"][entry], attributes["dltype"][entry])
        sizes[storage] = max(sizes.get(storage, 0), end)
    rows = parsed["node_row_ptr"]
    inputs = {storages[rows[node]] for node in parsed["arg_nodes"]}  # in memory of their own
    device_of = dict(zip(storages, devices, strict=True))
    arenas: dict[Any, int] = {}
    for storage, size in sorted(sizes.items()):
        if storage in inputs:
            continue
        device = device_of[storage]
        start = (
            attributes["storage_offset"][storage] if "storage_offset" in attributes else arenas.get(device, 0)
        )
        arenas[device] = max(arenas.get(device, 0), start + rounded(size))
    return sum(arenas.values())


def _bytes(shape: list[int], dtype: str) -> int:
    kind = DataType(dtype)
    return int(prod(shape)) * ((kind.bits * kind.lanes + 7) // 8)
