"""The memory plan of a function, by expression: for those who want to see what shares memory before a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.analysis.devices import DevicePlan
from tilewright.relay.backend.graph import CPU, Entry, ExecutorGraph, GraphBuilder, byte_size
from tilewright.relay.backend.memory_plan import GraphMemory, plan_graph_memory
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function


class StorageInfo:
    """Where the tensors of a value are, tuples flattened: storages, kinds of device as DLPack numbers them, bytes."""

    def __init__(self, sids: Sequence[int], dev_types: Sequence[int], sizes: Sequence[int]) -> None:
        self._storage_ids = list(sids)
        self._device_types = list(dev_types)
        self._storage_sizes = list(sizes)

    @property
    def storage_ids(self) -> list[int]:
        """The numbers of the storages. Tensors of one storage are in the same memory."""
        return self._storage_ids

    @property
    def device_types(self) -> list[int]:
        """The kind of device that each is on."""
        return self._device_types

    @property
    def storage_sizes(self) -> list[int]:
        """The bytes of each storage."""
        return self._storage_sizes

    def __repr__(self) -> str:
        return f"StorageInfo({self._storage_ids}, {self._device_types}, {self._storage_sizes})"


class StaticMemoryPlan:
    """The storages of all expressions of a function."""

    def __init__(self, expr_to_storage_info: Mapping[RelayExpr, StorageInfo]) -> None:
        self.expr_to_storage_info = dict(expr_to_storage_info)


def graph_plan_memory(func: Function) -> StaticMemoryPlan:
    """The plan of a function whose body was fused, as the graph executor would have it."""
    function = func if getattr(func, "_checked_type_", None) is not None else infer_function(func)
    builder = GraphBuilder("", DevicePlan(IRModule({"main": function}), CPU).device_of)
    graph = builder.build(function)
    names = _storages(graph, plan_graph_memory(graph))
    sizes: dict[int, int] = {}
    for entry, number in names.items():
        sizes[number] = max(sizes.get(number, 0), byte_size(graph.type_of(entry)))
    return StaticMemoryPlan(
        {
            expr: StorageInfo(
                [names[entry] for entry in entries],
                [graph.nodes[entry.node].device for entry in entries],
                [sizes[names[entry]] for entry in entries],
            )
            for expr, entries in builder.memo_map.items()
        }
    )


def _storages(graph: ExecutorGraph, memory: GraphMemory) -> dict[Entry, int]:
    """Numbers of what begins at the same place: storages that are used one after the other share an offset of the arena
    of their device, while inputs and constants have memory of their own."""
    own = {memory.storage_of[Entry(number)] for number, node in enumerate(graph.nodes) if node.kernel is None}
    numbers: dict[tuple[int, int], int] = {}
    made = {}
    for entry, storage in memory.storage_of.items():
        device = graph.nodes[entry.node].device
        place = (-1, storage) if storage in own else (device, memory.offsets[storage])
        made[entry] = numbers.setdefault(place, len(numbers))
    return made
