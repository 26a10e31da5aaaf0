"""Strides that are asked for."""

from __future__ import annotations

from tests.tir.schedule.programs import elementwise, refused

import tilewright as tvm
from tilewright import tir


def test_rows_with_a_gap() -> None:
    """The annotation stands at the block, the allocation has the stride, and the result is the same."""
    program = elementwise(12, 10)
    schedule = tir.Schedule(program.function, debug_mask="all")
    block = schedule.get_block("B")
    schedule.storage_align(block, 0, axis=0, factor=32, offset=3)
    assert schedule.get(block).annotations["buffer_dim_align"] == [[0, 0, 32, 3]]
    assert "35 + " in str(tvm.lower(schedule.mod, simple_mode=True)["main"])
    program.check(schedule.mod["main"])


def test_the_last_word_counts() -> None:
    """Each dimension has one alignment; negative numbers count from the end."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    block = schedule.get_block("B")
    schedule.storage_align(block, 0, 0, 32, 3)
    schedule.storage_align(block, 0, -1, 4, 0)
    schedule.storage_align(block, 0, -2, 16, 1)
    assert schedule.get(block).annotations["buffer_dim_align"] == [[0, 1, 4, 0], [0, 0, 16, 1]]


def test_refuses() -> None:
    """Memory of the caller, and numbers that mean nothing."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    b, d = schedule.get_block("B"), schedule.get_block("D")
    refused(
        schedule, lambda: schedule.storage_align(d, 0, 0, 32, 0), "D is an input or output: its strides are"
    )
    refused(
        schedule,
        lambda: schedule.storage_align(b, 1, 0, 32, 0),
        "it writes 1 regions; 1 is the number of none",
    )
    refused(
        schedule,
        lambda: schedule.storage_align(b, 0, 2, 32, 0),
        "B has 2 dimensions; 2 is the number of none",
    )
    refused(schedule, lambda: schedule.storage_align(b, 0, 0, 0, 0), "the factor 0 is not positive")
    refused(schedule, lambda: schedule.storage_align(b, 0, 0, 8, 8), "the offset 8 is not a remainder")
