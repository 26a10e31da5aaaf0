"""The eight-bit floats, against another implementation: every pattern of bits, and rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.tir.interpreter.float8 import decode, encode

TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("kind", TYPES)
def test_decode(kind: str) -> None:
    bits = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(decode(bits, kind), bits.view(TYPES[kind]).astype("float32"))


@pytest.mark.parametrize("kind", TYPES)
def test_encode(kind: str) -> None:
    """Ties go to even; what is too large becomes the largest number."""
    largest = float(ml_dtypes.finfo(TYPES[kind]).max)
    values = np.random.default_rng(1).standard_normal(500).astype("float32") * np.float32(largest / 3)
    values = np.concatenate([values, values * np.float32(1e-4), [0.0, -0.0, 1.0625, 1.1875, 1e9, -1e9]])
    wanted = np.clip(values, -largest, largest).astype(TYPES[kind]).view(np.uint8)
    np.testing.assert_array_equal([encode(float(value), kind) for value in values], wanted)
