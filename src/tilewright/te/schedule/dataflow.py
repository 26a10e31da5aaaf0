"""The graph of operations behind a schedule: order, consumers, and replacement of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.te.scan import ScanOp
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor


def operations_in_order(roots: Sequence[Operation]) -> list[Operation]:
    """Every operation that leads to the roots, producers first. Iterative: chains may be long."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack: list[tuple[Operation, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        operation, expanded = stack.pop()
        if expanded:
            order.append(operation)
        elif operation not in seen:
            seen.add(operation)
            stack.append((operation, True))
            stack.extend(
                (tensor.op, False) for tensor in reversed(operation.input_tensors) if tensor.op not in seen
            )
    return order


def readers_of(operations: Sequence[Operation]) -> dict[Tensor, list[Operation]]:
    """For each tensor, the operations that read it."""
    readers: dict[Tensor, list[Operation]] = {}
    for operation in operations:
        for tensor in operation.input_tensors:
            readers.setdefault(tensor, []).append(operation)
    return readers


def create_read_graph(ops: Sequence[Operation]) -> dict[Operation, list[Tensor]]:
    """The inputs of each operation that leads to these, producers first."""
    return {operation: list(operation.input_tensors) for operation in operations_in_order(ops)}


def create_feed_graph(read_graph: Mapping[Operation, Sequence[Tensor]]) -> dict[Tensor, list[Operation]]:
    """The readers of each tensor in a graph of reads."""
    return readers_of(list(read_graph))


def post_dfs_order(
    roots: Sequence[Operation], read_graph: Mapping[Operation, Sequence[Tensor]]
) -> list[Operation]:
    """The operations of a graph of reads that lead to the roots, producers first."""
    return [operation for operation in operations_in_order(roots) if operation in read_graph]


def scan_get_body(scan_op: ScanOp) -> list[Operation]:
    """The operations that a scan computes at each step: all between its state or inputs and its update."""
    outside = {tensor.op for tensor in (*scan_op.state_placeholder, *scan_op.inputs)}
    body: list[Operation] = []
    for operation in operations_in_order([tensor.op for tensor in scan_op.update]):
        reads = {tensor.op for tensor in operation.input_tensors}
        if operation not in outside and (reads & outside or reads & set(body)):
            body.append(operation)
    return body


def replace_dataflow(stages: Sequence[Stage], replaced: dict[Tensor, Tensor]) -> None:
    """Make every stage read the tensors that stand for the replaced ones; what changes is replaced in turn."""
    for stage in stages:
        operation = stage.op.replace_inputs(replaced)
        if operation is not stage.op:
            for old, new in zip(stage.op.outputs, operation.outputs, strict=True):
                # What was to be replaced by the old one is read by later stages still.
                replaced.update({given: new for given, stand_in in replaced.items() if stand_in is old})
                replaced[old] = new
            set_operation(stage, operation)


def set_operation(stage: Stage, operation: Operation) -> None:
    """Give a stage another operation with the same axes."""
    schedule = stage.schedule
    schedule.outputs = [operation if output is stage.op else output for output in schedule.outputs]
    stage.op = operation
    schedule.stage_map[operation] = stage
