"""Conversions of float16 and bfloat16, in hardware and in integer arithmetic, are the same and right."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.ir.expr import Add, Cast, Load, Mul, Ramp, Var
from tilewright.support.numbers import bfloat_bits, half_bits
from tilewright.tir.stmt import For, ForKind, Store


def convert(kit, values: np.ndarray, source: str, result: str, target: str, compute=None) -> np.ndarray:
    """The values converted by compiled code; bfloat16 arrays travel as their bits."""
    lanes, size = 8, len(values)
    storage = lambda dtype: "uint16" if dtype == "bfloat16" else dtype
    x, y, i = kit.buffer("x", size, storage(source)), kit.buffer("y", size, storage(result)), Var("i")
    index = Ramp(i * lanes, 1, lanes)
    value = Load(f"{source}x{lanes}", x.data, index)
    made = compute(value) if compute else Cast(f"{result}x{lanes}", value)
    output = np.zeros(size, storage(result))
    kit.build([x, y], For(i, 0, size // lanes, ForKind.SERIAL, Store(y.data, made, index)), target)["f"](
        values, output
    )
    return output


TARGETS = ["llvm -mcpu=haswell", "llvm -mcpu=x86-64"]


def all_float32() -> np.ndarray:
    """float32 numbers of all sizes, and those halfway between neighbours of the narrow types."""
    step = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)
    halfway = np.arange(0, 2**32, 2**16, dtype=np.uint64).astype(np.uint32) + 0x8000
    halves = (
        np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32) + 0x1000
    ).astype(np.uint32)
    denormal = np.linspace(-1e-4, 1e-4, 65536, dtype=np.float32).view(np.uint32)
    found = np.concatenate([step, halfway, halfway + 1, halfway - 1, halves, denormal]).view(np.float32)
    return found[: len(found) // 8 * 8].copy()


@pytest.mark.parametrize("target", TARGETS)
def test_float16(kit, target):
    """All 65536 values widen exactly, and float32 narrows to the nearest, ties to even."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(convert(kit, every, "float16", "float32", target), every.astype(np.float32))
    x = all_float32()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(convert(kit, x, "float32", "float16", target), x.astype(np.float16))


@pytest.mark.parametrize("target", TARGETS)
def test_bfloat16(kit, target):
    """bfloat16 is the upper half of a float32, rounded to nearest, ties to even; NaN stays NaN."""
    every = np.arange(65536, dtype=np.uint16)
    widened = convert(kit, every, "bfloat16", "float32", target)
    np.testing.assert_array_equal(widened, every.view(ml_dtypes.bfloat16).astype(np.float32))
    x = all_float32()
    with np.errstate(all="ignore"):
        expected = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    got = convert(kit, x, "float32", "bfloat16", target).view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(got, expected)


def test_bfloat16_arithmetic(kit):
    """Operations on bfloat16 are done in float32 and rounded back."""
    a = np.linspace(-4, 4, 256).astype(ml_dtypes.bfloat16)
    got = convert(kit, a.view(np.uint16), "bfloat16", "bfloat16", "llvm", lambda x: Add(Mul(x, x), x))
    np.testing.assert_array_equal(got.view(ml_dtypes.bfloat16), (a * a + a))


@pytest.mark.parametrize("result", ["float16", "bfloat16"])
def test_float64_is_rounded_once(kit, result):
    """A float64 just above the middle of two narrow numbers goes up, though float32 would have put it in the middle."""
    kind = np.float16 if result == "float16" else ml_dtypes.bfloat16
    near = np.array([1.0, -3.0, 0.001, 100.0, 1e-7, 60000.0, 2.5, -0.75], kind).astype(np.float64)
    above = np.nextafter(near.astype(np.float32), np.float32(0))
    middle = near + (np.spacing(near.astype(kind)).astype(np.float64) / 2)
    x = np.concatenate(
        [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), above.astype(np.float64)]
    )
    got = convert(kit, x, "float64", result, "llvm")
    exact = np.array([bfloat_bits(v) if result == "bfloat16" else half_bits(v) for v in x], np.uint16)
    np.testing.assert_array_equal(got.view(np.uint16), exact)
    if result == "float16":
        np.testing.assert_array_equal(got, x.astype(np.float16))


def test_constants_are_rounded_like_values():
    """A constant becomes the number that a conversion of its value would give."""
    assert half_bits(1.0) == 0x3C00 and half_bits(1e10) == 0x7C00 and half_bits(-1e10) == 0xFC00
    assert (
        bfloat_bits(1.0) == 0x3F80 and bfloat_bits(float("inf")) == 0x7F80 and bfloat_bits(3.4e38) == 0x7F80
    )
    assert bfloat_bits(1.0 + 2**-8) == 0x3F80 and bfloat_bits(1.0 + 2**-8 + 2**-40) == 0x3F81
