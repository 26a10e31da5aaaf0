"""Constant folding and compiled code agree on special numbers; see ``number_fuzz``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.relay import number_fuzz
from tests.relay.number_fuzz import Finding, difference, special_numbers


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled, not remembered."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def text(found: Sequence[Finding]) -> str:
    return "\n".join(f"seed {one.seed}: {one.message}\n{one.expr}" for one in found)


def test_numbers_are_special() -> None:
    """Every kind of number comes up."""
    floats = special_numbers(np.random.default_rng(0), "float32", (2000,))
    assert np.isnan(floats).any() and np.isposinf(floats).any() and np.isneginf(floats).any()
    zeros = floats[floats == 0]
    assert np.signbit(zeros).any() and not np.signbit(zeros).all()
    integers = special_numbers(np.random.default_rng(0), "int8", (2000,))
    assert integers.min() == -128 and integers.max() == 127


def test_differences_are_seen() -> None:
    """The sign of a zero, a NaN and the last bit count; the bits of a NaN do not."""
    one = np.array([0.0, 1.0, np.nan], "float32")
    assert difference(one, one.copy(), exact=True) is None
    assert difference(one, np.array([-0.0, 1.0, np.nan], "float32"), exact=True) is not None
    assert difference(one, np.array([0.0, 1.0, 1.0], "float32"), exact=False) is not None
    near = np.array([0.0, np.nextafter(np.float32(1), np.float32(2)), np.nan], "float32")
    assert difference(one, near, exact=True) is not None and difference(one, near, exact=False) is None
    assert difference(one, one.astype("float64"), exact=True) is not None


def test_folding_and_code_agree(own_cache: None) -> None:
    """Twenty seconds of the fuzzer find nothing."""
    count, found = number_fuzz.fuzz(range(1_000_000), seconds=20)
    assert count > 0
    assert not found, text(found)


@pytest.mark.slow
def test_folding_and_code_agree_for_long(own_cache: None) -> None:
    """Other programs for twice as long: nothing either."""
    count, found = number_fuzz.fuzz(range(1_000_000, 2_000_000), seconds=40)
    assert count > 0
    assert not found, text(found)
