"""Quantised layers, compiled with everything around them: the integers of the reference."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import differences


def test_random_layers() -> None:
    """Convolutions, products and what follows them, by the dot-product instructions of this machine."""
    assert differences(range(24)) == []


def test_without_dot_product_instructions() -> None:
    """A CPU with AVX2 only multiplies in pairs, exactly: sums of two products may exceed 16 bits."""
    assert differences(range(1000, 1010), "llvm -mcpu=haswell") == []
