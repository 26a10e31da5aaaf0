"""Building blocks of all CPU schedules: vector widths and parallel loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.decisions import decide
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage

VECTORS_AT_A_TIME: Final = 4
"""Vectors per iteration of an elementwise loop: enough to hide the latency of its instructions."""

BALANCE: Final = 1.15
"""Load imbalance (busiest core over mean) above which more loops are fused into the parallel one."""

MANY: Final = 32
"""Iterations that are assumed of a loop of dynamic extent which is not the outermost such."""

PLANNED_CORES: Final = 16
"""An artefact may run on more cores than the machine that compiled it has: its parallel loops have enough iterations
for so many. The thread pool groups them by the cores that are there."""

BALANCED, OUTERMOST, EVERY, SERIAL = "balanced", "outermost", "every", "serial"
"""Which outer loops run in parallel: enough to balance the load, the outermost, every one, none."""


def vector_factor(extent: int | None, lanes: int) -> int:
    """The number of elements of a contiguous axis per iteration: all of a short axis, otherwise a divisor in whole
    vectors if there is one. A vector may have any number of lanes; it is legalized to powers of two."""
    widest = VECTORS_AT_A_TIME * lanes
    if extent is None:
        return lanes
    if extent <= widest:
        return max(extent, 1)
    divisors = [factor for factor in range(lanes, widest + 1) if extent % factor == 0]
    if divisors:
        return max(divisors, key=lambda factor: (vector_fill(factor, lanes), factor))
    return widest if extent >= 4 * widest else lanes


def vector_fill(count: int, lanes: int) -> float:
    """The share of lanes in use when ``count`` elements are split into whole vectors and powers of two."""
    return count / lanes / (count // lanes + (count % lanes).bit_count())


def is_balanced(cpu: CPUDescription, tasks: int) -> bool:
    """True if so many equal tasks keep the target's cores busy, and those of a larger machine."""
    return all(
        -(-tasks // cores) * cores <= BALANCE * tasks for cores in (cpu.cores, max(cpu.cores, PLANNED_CORES))
    )


def parallel_prefix(cpu: CPUDescription, counts: Sequence[int | None], work: int) -> int:
    """How many of the outer loops, with these extents, to fuse into one parallel loop; 0 for none.

    Loops are added until the load is balanced. Few large iterations are better than many small ones, because
    neighbouring iterations share data in the cache of one core.
    """
    if work < cpu.parallel_work or cpu.cores < 2:
        return 0
    total = 1
    for number, count in enumerate(assumed_counts(counts)):
        total *= count
        if total > 1 and is_balanced(cpu, total):
            return number + 1
    return len(counts) if total > 1 or None in counts else 0


def assumed_counts(counts: Sequence[int | None]) -> list[int]:
    """The extents of loops, with those that are dynamic as far as a balanced load may rely on them: the outermost may
    be a batch of one image, and what is further in has many iterations."""
    found: list[int] = []
    is_first = True
    for count in counts:
        if count is None:
            found.append(1 if is_first else MANY)
            is_first = False
        else:
            found.append(count)
    return found


def decided_prefix(cpu: CPUDescription, constructed: int, most: int, work: int) -> int:
    """How many of ``most`` outer loops to fuse into the parallel one: as many as balance the load (``constructed``),
    unless a tuner wants the outermost loop only, all of them, or none."""
    if cpu.cores < 2 or most == 0 or work < cpu.parallel_work // 4:
        return constructed
    chosen = decide(
        "parallel", BALANCED, lambda: [OUTERMOST, EVERY, *([SERIAL] if work < 16 * cpu.parallel_work else [])]
    )
    return {BALANCED: constructed, OUTERMOST: 1, EVERY: most, SERIAL: 0}[chosen]


def run_parallel(
    stage: Stage, cpu: CPUDescription, loops: Sequence[IterVar], counts: Sequence[int | None], work: int
) -> IterVar | None:
    """Makes the first of these loops parallel, fused as far as needed, and returns the resulting loop."""
    number = decided_prefix(cpu, parallel_prefix(cpu, counts, work), len(loops), work)
    if number == 0:
        return None
    fused = stage.fuse(*loops[:number])
    stage.parallel(fused)
    return fused


def mark_remainder(stage: Stage, loop: IterVar, tile: int) -> None:
    """Has the pass TileRemainder compute what tiles of a dynamic extent leave over in smaller ones, if the loop over
    the tiles was not fused with others."""
    if any(loop is leaf for leaf in stage.leaf_iter_vars):
        stage.pragma(loop, "tile_remainder", tile)
