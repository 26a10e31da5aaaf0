"""A run of a graph with inputs and outputs in memory that the caller has for that call, at the cost of one C call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tilewright.runtime.failure import check, failure
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.library import LIBRARY

ALIGNMENT = 64
"""Memory begins at a multiple of this many bytes."""


def input_storage(executor: GraphExecutor, index: int) -> int | None:
    """The storage of an input; None where the graph must have memory of its own for it."""
    found = int(LIBRARY.tilewright_graph_input_storage(executor.address, index))
    return found if found >= 0 else None


def output_storage(executor: GraphExecutor, index: int) -> int | None:
    """The storage of an output; None where the output is in memory with something else."""
    found = int(LIBRARY.tilewright_graph_output_storage(executor.address, index))
    return found if found >= 0 else None


class GraphCall:
    """Runs a graph with some of its storages at addresses that every call gives anew.

    The graph uses the memory during the call only. The executor must not be run in any other way afterwards: the
    addresses of the last call may be those of nothing.
    """

    def __init__(self, executor: GraphExecutor, storages: Sequence[int]) -> None:
        if len(set(storages)) != len(storages):
            raise failure("ValueError", f"a storage has one address in a call, not several: {list(storages)}")
        self.executor = executor
        self._count = len(storages)
        self._storages = (ctypes.c_int32 * len(storages))(*storages)
        self._memory = (ctypes.c_uint64 * len(storages))()
        self._function = LIBRARY.tilewright_graph_run_in_place
        self._graph = executor.address

    def __call__(self, addresses: Sequence[int]) -> None:
        """Run with the storages at these addresses, in the order in which they were given."""
        self._memory[:] = list(addresses)
        if self._function(self._graph, self._count, self._storages, self._memory) != 0:
            check(-1)
