"""Which stages are inlined into their readers on a GPU.

Arithmetic is cheap next to memory: everything that computes elements from elements is inlined, unless an expensive
expression (``exp``, a division) would be evaluated again and again, or the expression would grow without bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Final

from tilewright.schedule.cpu.access import assumed, extent_of, reads_of
from tilewright.schedule.cpu.cost import cost_of, expanded_size, loads_nothing
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.auto_inline import may_be_inlined_into
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation

SIZE_LIMIT: Final = 512
"""The size of an expression beyond which nothing more is inlined into it: lowering time grows with it."""

REPEATED_WORK: Final = 19
"""Operations per element that may be done again rather than kept: fewer than one exponential."""

FREE_WORK: Final = 14
"""Operations per element that hide behind the loads of any reader: a conversion, or padding with its conditions."""


@dataclass
class _Use:
    """How often the body of a stage is evaluated, and by whom."""

    evaluations: int = 0
    readers: list[Stage] = field(default_factory=list)


def inline_stages(schedule: Schedule) -> None:
    """Inlines the stages that should be; the rest of the schedule is unchanged."""
    uses: dict[Operation, _Use] = {}
    wanted: set[Stage] = set()
    for stage in reversed(schedule.stages):
        operation = stage.op
        use = uses.get(operation, _Use())
        if isinstance(operation, ComputeOp):
            evaluations = use.evaluations
            if may_be_inlined_into(stage, use.readers) and _is_worth_it(operation, use):
                wanted.add(stage)
            else:
                evaluations = prod(extent_of(axis) for axis in (*operation.axes, *operation.reduce_axis))
            for read in reads_of(operation):
                uses.setdefault(read.tensor.op, _Use()).evaluations += evaluations
        for tensor in operation.input_tensors:
            uses.setdefault(tensor.op, _Use()).readers.append(stage)
    sizes: dict[Operation, int] = {}
    for stage in schedule.stages:
        if stage in wanted and isinstance(stage.op, ComputeOp):
            size = expanded_size(stage.op, sizes)
            if size <= SIZE_LIMIT:
                sizes[stage.op] = size
                stage.compute_inline()


def _is_worth_it(operation: ComputeOp, use: _Use) -> bool:
    """True if computing an element wherever it is read costs less than storing and loading it."""
    if all(loads_nothing(value) for value in operation.body):
        return True
    elements = max(prod(assumed(extent) for extent in operation.output(0).shape), 1)
    again = use.evaluations / elements - 1
    work = cost_of(operation).operations
    return again <= 0.5 or work * again <= REPEATED_WORK or work <= FREE_WORK
