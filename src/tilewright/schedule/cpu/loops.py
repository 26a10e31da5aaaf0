"""Pieces that every schedule is made of: how wide vectors are, which loops run in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.ir.expr import IterVar
from tilewright.schedule.cpu.machine import PARALLEL_WORK
from tilewright.target.cpu import CPUDescription
from tilewright.te.schedule.stage import Stage

VECTORS_AT_A_TIME: Final = 4
"""Vectors that one iteration of an elementwise loop handles: enough to hide what a step waits for."""

BALANCE: Final = 1.15
"""How much longer than the mean the busiest core may take before more loops are made parallel."""


def vector_factor(extent: int | None, lanes: int) -> int:
    """How many elements of a contiguous axis to handle at a time: all of a short one, else so that they divide it
    in whole vectors if they can. The lanes of a vector may be any number; its parts are powers of two."""
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
    """The share of its vectors that so many elements fill; what is over whole vectors goes into powers of two."""
    return count / lanes / (count // lanes + (count % lanes).bit_count())


def parallel_prefix(cpu: CPUDescription, counts: Sequence[int | None], work: int) -> int:
    """How many of the outer loops, with these iterations, should become one parallel loop; 0 for none.

    Loops are added until all cores have about the same to do. Few iterations of much work each are better than
    many: what neighbours share stays in one core's cache.
    """
    if work < PARALLEL_WORK or cpu.cores < 2:
        return 0
    total = 1
    for number, count in enumerate(counts):
        total *= 32 if count is None else count
        if total > 1 and -(-total // cpu.cores) * cpu.cores <= BALANCE * total:
            return number + 1
    return len(counts) if total > 1 else 0


def run_parallel(
    stage: Stage, cpu: CPUDescription, loops: Sequence[IterVar], counts: Sequence[int | None], work: int
) -> IterVar | None:
    """Make the first of these loops parallel, fused as far as needed, and give the loop that they became."""
    number = parallel_prefix(cpu, counts, work)
    if number == 0:
        return None
    fused = stage.fuse(*loops[:number])
    stage.parallel(fused)
    return fused
