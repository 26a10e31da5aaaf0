"""Folding, the interpreter and compiled code agree on loop-level expressions; see ``number_fuzz``."""

from __future__ import annotations

import pytest
from tests.tir import number_fuzz


@pytest.mark.parametrize(
    ("first", "seconds"),
    [(0, 15), pytest.param(1_000_000, 40, marks=pytest.mark.slow)],
    ids=["short", "long"],
)
def test_folding_interpreter_and_code_agree(first: int, seconds: float) -> None:
    """The fuzzer finds nothing."""
    count, found = number_fuzz.fuzz(range(first, first + 1_000_000), seconds)
    assert count > 0
    assert not found, "\n".join(f"seed {one.seed}: {one.message}\n{one.expr}" for one in found)


def test_masks_of_narrow_accesses() -> None:
    """A comparison of bytes as the mask of eight: LLVM widened it with lanes that were true, and read past the end."""
    assert number_fuzz.check(1_000_014) == []
