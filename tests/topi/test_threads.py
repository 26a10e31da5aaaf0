"""Kernels that are written for blocks of threads, in the interpreter's threads: rows longer than a tile, equal keys,
NaN, and indices that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import run

import tilewright as tvm
from tilewright import te
from tilewright.ir import operators
from tilewright.topi import threads

SMALL = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=16")
TWO_WARPS = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=64")


@pytest.mark.parametrize(
    ("length", "target"),
    [(1, SMALL), (2, SMALL), (7, SMALL), (100, SMALL), (64, TWO_WARPS), (300, TWO_WARPS)],
)
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorting_is_stable(length: int, target: tvm.target.Target, ascending: bool, axis: int) -> None:
    """In shared memory, and in the registers of warps: equal values keep their order; NaN is the greatest."""
    shape = (3, length) if axis else (length, 3)
    a = te.placeholder(shape, name="a")
    x = np.random.default_rng(length).integers(0, 9, shape).astype("float32")
    x.ravel()[::5] = np.nan
    with target:
        (order,) = run([a], [threads.argsort(a, axis, int(ascending), "int32")], x, target=target)
        (values,) = run([a], [threads.sort(a, axis, int(ascending))], x, target=target)
    keys = np.where(np.isnan(x), np.inf, x)
    expected = np.argsort(keys if ascending else -keys, axis=axis, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize(
    ("dtype", "target"), [("int32", SMALL), ("uint8", TWO_WARPS), ("float64", TWO_WARPS)]
)
def test_the_first_few(dtype: str, target: tvm.target.Target) -> None:
    """Of narrow keys, and of keys too wide for one number with their position."""
    a = te.placeholder((2, 150), dtype, name="a")
    x = np.random.default_rng(0).integers(0, 200, (2, 150)).astype(dtype)
    with target:
        values, places = run([a], threads.topk(a, 5), x, target=target)
    np.testing.assert_array_equal(values, np.sort(x, axis=1)[:, ::-1][:, :5])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((2, 300), 1), ((128,), 0), ((5, 7, 3), 1), ((4, 9), None)])
def test_running_sums(shape: tuple[int, ...], axis: int | None, exclusive: bool) -> None:
    """Of rows longer than a tile of all threads, and of rows whose elements lie apart."""
    a = te.placeholder(shape, "int32", name="a")
    x = np.random.default_rng(1).integers(-5, 5, shape).astype("int32")
    with SMALL:
        made = threads.scan_rows(a, operators.add, 0, "cumsum", axis, None, exclusive)
        (result,) = run([a], [made], x, target=SMALL)
    expected = np.cumsum(x, axis=axis)
    if exclusive:
        expected = expected - (x.reshape(-1) if axis is None else x)
    np.testing.assert_array_equal(result, expected)


def test_updates_that_meet_are_added() -> None:
    a, i, u = te.placeholder((6, 4)), te.placeholder((9, 4), "int64"), te.placeholder((9, 4))
    random = np.random.default_rng(2)
    x: Any = random.integers(0, 9, (6, 4)).astype("float32")
    places = random.integers(-6, 7, (9, 4))
    y = random.integers(0, 9, (9, 4)).astype("float32")
    with SMALL:
        (result,) = run([a, i, u], [threads.scatter_add_elements(a, i, u, 0)], x, places, y, target=SMALL)
    expected = x.copy()
    for row, column in np.ndindex(9, 4):
        if places[row, column] < 6:
            expected[places[row, column], column] += y[row, column]
    np.testing.assert_array_equal(result, expected)
