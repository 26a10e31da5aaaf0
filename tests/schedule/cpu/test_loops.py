"""How many outer loops run in parallel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.schedule.cpu.loops import assumed_counts, parallel_prefix
from tilewright.target.cpu import describe_cpu


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([16, 100], 1),
        ([8, 100], 2),  # enough for two cores, and too few for a larger machine
        ([3, 100], 2),
        ([None, 8, None], 3),  # a batch of one image: the cores share what is further in
        ([None, 1, None, 5], 3),
        ([None], 1),
        ([None, None], 2),
        ([1, 1], 0),
    ],
)
def test_loops_balance_the_load(counts: list[int | None], expected: int) -> None:
    """Loops are added until the cores have equal work; the outermost of open extent may have one iteration."""
    cpu = replace(describe_cpu("llvm -mcpu=x86-64-v3"), cores=2)
    assert parallel_prefix(cpu, counts, 1000 * cpu.parallel_work) == expected
    assert parallel_prefix(cpu, counts, cpu.parallel_work - 1) == 0


def test_assumed_counts() -> None:
    """Only the first open extent is assumed to be one."""
    assert assumed_counts([4, None, None, 2]) == [4, 1, 32, 2]
