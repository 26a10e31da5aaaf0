"""Running sums of rows by blocks of threads, in the interpreter's threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
from tilewright import te, tir
from tilewright.topi import threads

RANDOM = np.random.default_rng(4)
SHUFFLES, MEMORY = tvm.target.Target("cuda -arch=sm_80"), tvm.target.Target("opencl")
"""Targets whose threads exchange registers, and shared memory only."""


def scanned(data: Any, target: Any, dtype: str | None = None, exclusive: bool = False) -> Any:
    """The running sums of the rows of a matrix, on a target."""
    x = te.placeholder(data.shape, str(data.dtype), name="x")
    with target:
        made = threads.scan_rows(x, lambda a, b: a + b, 0, "sums", 1, dtype, exclusive)
    (result,) = run([x], [made], data, target=target)
    return result


@pytest.mark.parametrize("target", [SHUFFLES, MEMORY], ids=["shuffles", "memory"])
@pytest.mark.parametrize("length", [1, 4, 37, 128, 300])
def test_sums(target: Any, length: int) -> None:
    """Rows of one element, of a part of a warp, and of several warps, whole vectors or not."""
    data = RANDOM.integers(-9, 9, (2, length)).astype("int32")
    np.testing.assert_array_equal(scanned(data, target), np.cumsum(data, 1, dtype="int32"))
    expected = np.cumsum(data, 1, dtype="int32") - data
    np.testing.assert_array_equal(scanned(data, target, exclusive=True), expected)


@pytest.mark.parametrize("target", [SHUFFLES, MEMORY], ids=["shuffles", "memory"])
def test_rows_of_several_tiles(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier tiles have is added to later ones."""
    monkeypatch.setattr(threads.scan, "THREADS", 64)
    data = RANDOM.integers(-9, 9, (1, 600)).astype("int32")
    np.testing.assert_array_equal(scanned(data, target), np.cumsum(data, 1, dtype="int32"))


@pytest.mark.parametrize(("dtype", "result"), [("float16", None), ("int8", "int64"), ("float64", None)])
def test_types(dtype: str, result: str | None) -> None:
    """Sixteen-bit floats are added in float32; wide results are exchanged through shared memory."""
    data = RANDOM.integers(-3, 4, (2, 70)).astype(dtype)
    made = scanned(data, SHUFFLES, result)
    assert made.dtype == (result or dtype)
    np.testing.assert_array_equal(made, np.cumsum(data, 1, dtype=made.dtype))


def test_order_of_operations() -> None:
    """An operation that is not commutative: the last number that is not zero."""
    data = np.array([[0, 3, 0, 0, 5, 0] * 12], "int32")
    x = te.placeholder(data.shape, "int32", name="x")
    with SHUFFLES:
        made = threads.scan_rows(x, lambda a, b: tir.Select(b.equal(0), a, b), 0, "last", 1)
    (result,) = run([x], [made], data, target=SHUFFLES)
    expected = [value for _ in range(12) for value in (5, 3, 3, 3, 5, 5)]
    expected[0] = 0
    np.testing.assert_array_equal(result[0], expected)
