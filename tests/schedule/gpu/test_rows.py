"""Rows: reductions, softmax and norms of every shape, through the simulated threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import device_function, random_arrays, run

from tilewright import build, te, tir, topi
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decisions
from tilewright.target import Target
from tilewright.te import Tensor


def numpy_softmax(x: Any, axis: int = -1) -> Any:
    raised = np.exp(x.astype("float64") - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 11), -1),
        ((2, 40), -1),
        ((2, 5, 96), -1),
        ((1, 1000), -1),
        ((600,), 0),
        ((2, 7, 3, 5), 1),
        ((3, 4, 64), 1),
        ((5, 1), -1),
        ((40, 2), -1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """Along any axis; long and short rows, of any length."""
    a = te.placeholder(shape, dtype, name="a")
    made = topi.nn.softmax(a, axis=axis)
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    np.testing.assert_allclose(
        result,
        numpy_softmax(x, axis),
        rtol=1e-2 if dtype == "float16" else 1e-5,
        atol=1e-3 if dtype == "float16" else 1e-7,
    )


@pytest.mark.parametrize("shape", [(64, 37), (1, 32, 1, 101)])
@pytest.mark.parametrize("make", [topi.nn.softmax, topi.nn.log_softmax])
def test_narrow_rows_of_odd_length(shape: tuple[int, ...], make: Callable[..., Tensor]) -> None:
    """Those of a block travel through shared memory, since together they fill vectors."""
    a = te.placeholder(shape, "float16", name="a")
    (x,) = random_arrays([a])
    with Decisions({"row_threads": (8, 16), "row_threads.1": (8, 16)}):
        (result,) = run([a], [make(a)], x)
    expected = numpy_softmax(x)
    if make is topi.nn.log_softmax:
        expected = np.log(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-2, atol=1e-3)


def test_many_narrow_rows_of_odd_length_are_copied() -> None:
    """Both ways, in vectors of 16 bytes."""
    a = te.placeholder((1 << 16, 37), "float16", name="a")
    with Target("cuda -arch=sm_90a") as target:
        made = topi.nn.softmax(a)
        library = build(schedule([made], target), [a, made], target)
    ptx = library.imported_modules[0].get_source("ptx")
    assert "ld.global.nc.v4.b32" in ptx
    assert "st.global.v4.b32" in ptx
    assert "ld.global.nc.b16" not in ptx


REDUCTIONS: list[tuple[Callable[..., Tensor], Callable[..., Any]]] = [
    (topi.sum, np.sum),
    (topi.max, np.max),
    (topi.min, np.min),
    (topi.argmax, np.argmax),
    (topi.argmin, np.argmin),
    (topi.prod, np.prod),
]


@pytest.mark.parametrize(("reduce", "expected"), REDUCTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((4, 300), 1),
        ((300, 5), 0),
        ((2, 33, 7), 1),
        ((2, 1500), None),
        ((7,), 0),
        ((1, 1), 0),
        ((3, 4, 130), 2),
        ((64, 3), 1),
    ],
)
def test_reductions(reduce: Any, expected: Any, shape: tuple[int, ...], axis: int | None) -> None:
    """Along rows, along columns, and of everything."""
    a = te.placeholder(shape, name="a")
    made = reduce(a, axis=axis)
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    np.testing.assert_allclose(result, expected(x, axis=axis), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (1, 2, 3), (0, 1)])
def test_reductions_of_several_axes(axes: tuple[int, ...]) -> None:
    a = te.placeholder((3, 4, 6, 8), name="a")
    made = topi.multiply(topi.sum(topi.multiply(a, a), axis=axes, keepdims=True), 0.5)
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    np.testing.assert_allclose(result, (x * x).sum(axis=axes, keepdims=True) * 0.5, rtol=1e-5)


@pytest.mark.parametrize(("shape", "axes"), [((3, 50), (1,)), ((2, 3, 64), (2,)), ((2, 3, 4, 8), (2, 3))])
def test_normalisation(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Mean, variance and the result in one pass."""
    a = te.placeholder(shape, name="a")
    size = int(np.prod([shape[axis] for axis in axes]))
    mean = topi.divide(topi.sum(a, axis=axes, keepdims=True), float(size))
    centred = topi.subtract(a, mean)
    variance = topi.divide(topi.sum(topi.multiply(centred, centred), axis=axes, keepdims=True), float(size))
    made = topi.multiply(centred, topi.rsqrt(topi.add(variance, 1e-5)))
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    centred_x = x - x.mean(axis=axes, keepdims=True)
    np.testing.assert_allclose(
        result, centred_x / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5), rtol=1e-4, atol=1e-5
    )
    function = device_function([a], [made])
    assert len(kernels(function)) == 1, function


def kernels(function: Any) -> list[Any]:
    """The kernels of a function, by their grids."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        if (
            isinstance(node, tir.AttrStmt)
            and node.attr_key == "thread_extent"
            and node.node.thread_tag == "blockIdx.x"
        ):
            found.append(node)

    tir.stmt_functor.post_order_visit(function.body, visit)
    return found


def loads_of(function: Any, name: str) -> list[Any]:
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tir.Load) and node.buffer_var.name.startswith(name):
            found.append(node)

    tir.stmt_functor.post_order_visit(function.body, visit)
    return found


def test_a_row_is_read_once() -> None:
    """One kernel, and the sixteen bytes of each thread are loaded once, for all three passes over the row."""
    a = te.placeholder((30000, 512), "float32", name="a")
    function = device_function([a], [topi.nn.softmax(a)])
    assert len(kernels(function)) == 1
    loads = loads_of(function, "a")
    outside = [load for load in loads if load.buffer_var.storage_scope != "local"]
    assert len(outside) * 4 * 32 == 512 and all(load.dtype.lanes == 4 for load in outside)


def test_unknown_rows() -> None:
    """Any number of rows of a known length; and of an unknown one."""
    for shape in ((te.var("n"), 24), (3, te.var("m")), (te.var("n"), te.var("m"))):
        a = te.placeholder(shape, name="a")
        made = topi.nn.softmax(a)
        function = device_function([a], [made])
        x = random_arrays([te.placeholder((3, 24))])[0]
        result = np.zeros_like(x)
        from tilewright.tir.interpreter import interpret

        interpret(function, x, result)
        np.testing.assert_allclose(result, numpy_softmax(x), rtol=1e-5)
