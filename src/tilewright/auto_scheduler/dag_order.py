"""The order of a graph's operations, by which the stages of states are numbered.

Records name stages by number, so the order is part of their format: it is TVM 0.8's.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.tensor import Operation, Tensor


def operations_by_priority(tensors: Sequence[Tensor]) -> list[Operation]:
    """Every operation that leads to the tensors, producers first; among those that are ready, the one that a search
    from the last tensor backwards met last."""
    priority: dict[Operation, int] = {}
    degree: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        operation = stack.pop()
        if operation in priority:
            continue
        if not isinstance(operation, (PlaceholderOp, ComputeOp)):
            raise ScheduleError(
                f"operation {operation.name} is a {type(operation).__name__}; a ComputeDAG has placeholders and "
                "computations (te.compute) only"
            )
        priority[operation] = len(priority)
        degree[operation] = len(operation.input_tensors)
        for tensor in operation.input_tensors:
            readers.setdefault(tensor.op, []).append(operation)
            stack.append(tensor.op)
    order: list[Operation] = []
    ready = [(-priority[operation], operation) for operation in priority if degree[operation] == 0]
    heapq.heapify(ready)
    while ready:
        _, operation = heapq.heappop(ready)
        order.append(operation)
        for reader in readers.get(operation, ()):
            degree[reader] -= 1
            if degree[reader] == 0:
                heapq.heappush(ready, (-priority[reader], reader))
    return order
