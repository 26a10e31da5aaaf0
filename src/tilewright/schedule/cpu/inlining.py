"""Which stages are inlined into their readers, and which are materialized.

Inlining saves a round trip through memory, but recomputes an element each time it is read. So a stage that is read
about once, or is almost free, is inlined; an expensive (``exp``, division) or conditional (padding) one that is read
repeatedly, above all by a reduction, is materialized.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Final

from tilewright.schedule.cpu.access import Read, assumed, extent_of, reads_of
from tilewright.schedule.cpu.cost import Cost, cost_of, expanded_size, loads_nothing
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.auto_inline import may_be_inlined_into
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation

SIZE_LIMIT: Final = 256
"""The size of an expression beyond which nothing more is inlined into it: lowering time grows with it."""

REPEATED_ONCE: Final = 1.3
REPEATED_WORK: Final = 16
REPEATED_WORK_IN_REDUCTION: Final = 2
"""Evaluations per element that still count as one; and the operations per element that may be recomputed rather than
materialized, by elementwise readers and by reductions."""


@dataclass
class _Use:
    """How often the body of a stage is evaluated, and whether a reduction does it."""

    evaluations: int = 0
    by_reduction: bool = False
    sites: int = 0
    readers: list[Stage] = field(default_factory=list)


def inline_stages(schedule: Schedule) -> None:
    """Inlines the stages that should be; the rest of the schedule is unchanged."""
    uses: dict[Operation, _Use] = {}
    inlined: list[Stage] = []
    for stage in reversed(schedule.stages):
        operation = stage.op
        use = uses.get(operation, _Use())
        if isinstance(operation, ComputeOp):
            if may_be_inlined_into(stage, use.readers) and _should_be_inlined(operation, use):
                inlined.append(stage)
                evaluations, by_reduction = use.evaluations, use.by_reduction
            else:
                reduced = [extent_of(axis) for axis in operation.reduce_axis]
                evaluations = prod([*(extent_of(axis) for axis in operation.axes), *reduced])
                by_reduction = bool(reduced)
            for read in reads_of(operation):
                into = uses.setdefault(read.tensor.op, _Use())
                into.evaluations += evaluations
                into.by_reduction = into.by_reduction or by_reduction
                into.sites += 1
        for tensor in operation.input_tensors:
            uses.setdefault(tensor.op, _Use()).readers.append(stage)
    _inline_within_size(schedule, inlined)


def _should_be_inlined(operation: ComputeOp, use: _Use) -> bool:
    cost = cost_of(operation)
    if all(loads_nothing(value) for value in operation.body):
        return cost.operations <= REPEATED_WORK
    elements = max(prod(assumed(extent) for extent in operation.output(0).shape), 1)
    repeated = use.evaluations / elements
    if repeated <= REPEATED_ONCE:
        return True
    if not use.by_reduction:
        return cost.operations * (repeated - 1) <= REPEATED_WORK
    return _reduction_may_repeat(operation, cost, repeated)


def _reduction_may_repeat(operation: ComputeOp, cost: Cost, repeated: float) -> bool:
    """A reduction recomputes reshapes that preserve element order, and cheap expressions that are read in order; a
    transpose, a packing or a padding is materialized, so that the reduction reads contiguous memory."""
    reads = reads_of(operation)
    if cost.chooses or not all(_keeps_order(read, operation) for read in reads):
        return False
    return cost.operations * (repeated - 1) <= REPEATED_WORK_IN_REDUCTION


def _keeps_order(read: Read, operation: ComputeOp) -> bool:
    axes = [axis for axis in operation.axes if extent_of(axis) > 1]
    return not axes or read.is_contiguous(axes[-1], extent_of(axes[-1]))


def _inline_within_size(schedule: Schedule, wanted: list[Stage]) -> None:
    """Inlines the wanted stages, producers first, as long as the resulting expressions stay small."""
    sizes: dict[Operation, int] = {}
    chosen = set(wanted)
    for stage in schedule.stages:
        if stage not in chosen or not isinstance(stage.op, ComputeOp):
            continue
        size = expanded_size(stage.op, sizes)
        if size <= SIZE_LIMIT:
            sizes[stage.op] = size
            stage.compute_inline()
