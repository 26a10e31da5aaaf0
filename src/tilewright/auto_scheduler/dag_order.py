"""The order of a graph's operations, by which the stages of states are numbered.

Records name stages by number, so the order is part of their format: it is TVM 0.8's, that of the stages of a schedule
of the graph's outputs. Of several outputs, one comes first if its inputs are complete first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tilewright.support.errors import ScheduleError
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.schedule.dataflow import operations_in_order
from tilewright.te.tensor import Operation, Tensor


def ordered_operations(tensors: Sequence[Tensor]) -> list[Operation]:
    """Every operation that leads to the tensors, producers first."""
    by_priority = _by_priority(tensors)
    read = {tensor.op for operation in by_priority for tensor in operation.input_tensors}
    return operations_in_order([operation for operation in by_priority if operation not in read])


def _by_priority(tensors: Sequence[Tensor]) -> list[Operation]:
    """Producers first; among the operations that are ready, the one that a search from the last tensor backwards met
    last."""
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
