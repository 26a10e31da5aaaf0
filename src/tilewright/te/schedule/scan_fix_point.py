"""Which axes of a scan are independent of each other: its fix points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.ir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Var
from tilewright.ir.functor import post_order, substitute_expr, uses_var
from tilewright.te.operation import ComputeOp
from tilewright.te.scan import ScanOp
from tilewright.te.schedule.dataflow import scan_get_body
from tilewright.te.tensor import Operation, Tensor


def scan_fix_point_analysis(scan: ScanOp) -> dict[IterVar, IntImm]:
    """For each spatial axis 1 if a step computes an index of it from the same index of the steps before, else 0.

    Such an axis can be computed for one index after another, and another stage can be computed at it.
    """
    inside = set(scan_get_body(scan))
    axes = iter(scan.spatial_axis)
    found: dict[IterVar, IntImm] = {}
    for update in scan.update:
        operation = update.op
        own = [next(axes) for _ in update.shape[1:]]
        reads = None
        if isinstance(operation, ComputeOp):
            variables = [axis.var for axis in operation.axis]
            reads = list(_state_reads(update, variables, set(scan.state_placeholder), inside))
        for position, axis in enumerate(own, 1):
            fixed = reads is not None and all(_keeps(indices, variables, position) for indices in reads)
            found[axis] = IntImm("int32", int(fixed))
    return found


def _keeps(indices: Sequence[PrimExpr] | None, variables: Sequence[Var], position: int) -> bool:
    """True if a state is read at the same index in this dimension, and that index is used for no other."""
    if indices is None:
        return False
    variable = variables[position]
    others = [index for number, index in enumerate(indices) if number != position]
    return indices[position] is variable and not any(uses_var(index, variable) for index in others)


def _state_reads(
    tensor: Tensor, indices: Sequence[PrimExpr], states: set[Tensor], inside: set[Operation]
) -> Iterator[Sequence[PrimExpr] | None]:
    """The indices at which an element depends on the states; None where it depends on them in an unknown way."""
    if tensor in states:
        yield indices
        return
    operation = tensor.op
    if operation not in inside:
        return
    if not isinstance(operation, ComputeOp):
        yield None
        return
    mapping = {axis.var: index for axis, index in zip(operation.axis, indices, strict=True)}
    for load in post_order(operation.body[tensor.value_index]):
        if isinstance(load, ProducerLoad) and isinstance(load.producer, Tensor):
            read = [substitute_expr(index, mapping) for index in load.indices]
            yield from _state_reads(load.producer, read, states, inside)
