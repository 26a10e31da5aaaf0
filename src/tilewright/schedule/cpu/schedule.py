"""Constructs a CPU schedule for any graph of tensor expressions.

Cheap stages are inlined. Of the rest, a stage that can be computed inside the loops of its only reader is, in one of
two forms: a reduction in register tiles with its epilogue applied to each tile, or several stages fused over the same
rows. The others have loop nests of their own. Operations that are not computations (scan, extern, hybrid) stay as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.contraction import classify, vector_position
from tilewright.schedule.cpu.fused_rows import has_enough_rows, schedule_fused_rows
from tilewright.schedule.cpu.graph import (
    MaterializedStage,
    cones,
    materialized_stages,
    reads_in_place,
    row_axes,
)
from tilewright.schedule.cpu.injective import schedule_injective_root
from tilewright.schedule.cpu.inlining import inline_stages
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.schedule.cpu.reduction import schedule_reduction
from tilewright.schedule.decisions import decide
from tilewright.support.recursion import with_recursion_room
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.tensor import Tensor


@with_recursion_room
def construct_schedule(outs: Tensor | Sequence[Tensor]) -> Schedule:
    """The schedule of the graph that leads to these tensors, for the current target."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    schedule = create_schedule([tensor.op for tensor in tensors])
    cpu = current_cpu()
    inline_stages(schedule)
    stages = materialized_stages(schedule)
    for root, cone in _fitting_cones(stages, cpu).items():
        if root.is_schedulable:
            _schedule_root(schedule, root, cone, cpu)
    return schedule


def _fitting_cones(
    stages: list[MaterializedStage], cpu: CPUDescription
) -> dict[MaterializedStage, list[MaterializedStage]]:
    """Roots and cones such that each has one of the forms above; stages that do not fit become roots."""
    roots: set[MaterializedStage] = set()
    fused: dict[tuple[MaterializedStage, ...], bool] = {}
    while True:
        found = cones(stages, roots)
        misfits = [
            _misfit(root, cone)
            for root, cone in found.items()
            if cone and not _anchor(root, cone) and not _is_fused(root, cone, cpu, fused)
        ]
        if not misfits:
            return found
        roots.update(misfits)


def _misfit(root: MaterializedStage, cone: list[MaterializedStage]) -> MaterializedStage:
    """The stage to make a root: the last GEMM or convolution, else the last stage."""
    heavy = [materialized for materialized in cone if is_heavy(materialized)]
    return (heavy or cone)[-1]


def is_heavy(materialized: MaterializedStage) -> bool:
    """True for a reduction that profits from a register tile: a GEMM or a convolution."""
    vector = vector_position(materialized) if materialized.is_reduction else None
    return vector is not None and classify(materialized, vector).is_product


def _anchor(root: MaterializedStage, cone: list[MaterializedStage]) -> MaterializedStage | None:
    """The only reduction of the root and its cone, if the root is it or reads it in place, and everything else is read
    only by it."""
    reductions = [materialized for materialized in (*cone, root) if materialized.is_reduction]
    if len(reductions) != 1:
        return None
    anchor = reductions[0]
    if anchor is not root and (anchor.readers != [root] or not reads_in_place(root, anchor)):
        return None
    inside = [materialized for materialized in cone if materialized is not anchor]
    return (
        anchor if all(root not in materialized.readers or anchor is root for materialized in inside) else None
    )


def _is_fused(
    root: MaterializedStage,
    cone: list[MaterializedStage],
    cpu: CPUDescription,
    decided: dict[tuple[MaterializedStage, ...], bool],
) -> bool:
    """True if the root and its cone are fused over the rows that they share; decided once for each cone."""
    rows = _common_rows(root, cone)
    if not rows:
        return False
    stages = (root, *cone)
    if stages not in decided:
        decided[stages] = decide("fuse_rows", has_enough_rows(root, cone, rows, cpu), lambda: [True, False])
    return decided[stages]


def _common_rows(root: MaterializedStage, cone: list[MaterializedStage]) -> list[IterVar]:
    """The rows that the root and its cone share, and could be fused over."""
    if any(is_heavy(materialized) for materialized in (*cone, root)):
        return []
    rows = row_axes(root, cone)
    innermost = vector_position(root)
    # The axis along which results are contiguous is vectorized, if other axes are left for the rows.
    outer = [axis for axis in rows if innermost is None or axis is not root.compute.axes[innermost]]
    return outer or rows


def _schedule_root(
    schedule: Schedule, root: MaterializedStage, cone: list[MaterializedStage], cpu: CPUDescription
) -> None:
    if root.elements() == 0:
        return
    anchor = _anchor(root, cone)
    if anchor is not None:
        producers = [materialized for materialized in cone if materialized is not anchor]
        rows = row_axes(root, cone) if producers else []
        shared = [number for number, axis in enumerate(root.compute.axes) if any(axis is row for row in rows)]
        schedule_reduction(schedule, anchor, None if anchor is root else root, producers, shared, cpu)
    elif cone:
        schedule_fused_rows(schedule, root, cone, _common_rows(root, cone), cpu)
    else:
        schedule_injective_root(root, cpu)
