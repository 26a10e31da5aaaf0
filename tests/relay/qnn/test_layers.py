"""Quantised layers, compiled with everything around them: the integers of the reference."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import TOGETHER, differences


@pytest.mark.parametrize("first", [0, TOGETHER, 2 * TOGETHER])
def test_random_layers(first: int) -> None:
    """Convolutions, products and what follows them, by the dot-product instructions of this machine."""
    assert differences(range(first, first + TOGETHER)) == []


def test_without_dot_product_instructions() -> None:
    """A CPU with AVX2 only multiplies in pairs, exactly: sums of two products may exceed 16 bits."""
    assert differences(range(1000, 1000 + TOGETHER), "llvm -mcpu=haswell") == []
