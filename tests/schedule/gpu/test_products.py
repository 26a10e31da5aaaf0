"""Matrix products, batched ones and convolutions: tiles through shared memory, with what is fused around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import device_function, random_arrays, run

import tilewright as tvm
import tilewright.topi.testing
from tilewright import te, tir, topi
from tilewright.schedule.gpu.machine import GpuMachine
from tilewright.schedule.gpu.product import choose_tile


@pytest.fixture(autouse=True)
def ordinary_cores() -> Iterator[None]:
    """Tensor cores multiply float32 otherwise."""
    with tvm.transform.PassContext(config={"tir.strict_float32": True}):
        yield


SMALL = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=64")
"""Small tiles: the interpreter runs threads one by one."""


@pytest.mark.parametrize(
    ("rows", "columns", "steps"),
    [(40, 36, 24), (33, 70, 13), (8, 8, 4), (20, 64, 20), (1, 40, 30), (64, 3, 9)],
)
@pytest.mark.parametrize("transposed", [(False, True), (True, False)])
def test_products(rows: int, columns: int, steps: int, transposed: tuple[bool, bool]) -> None:
    """Of any size and layout, with a prologue and an epilogue."""
    a = te.placeholder((steps, rows) if transposed[0] else (rows, steps), name="a")
    b = te.placeholder((columns, steps) if transposed[1] else (steps, columns), name="b")
    bias = te.placeholder((columns,), name="bias")
    made = topi.nn.relu(topi.add(topi.nn.matmul(topi.multiply(a, 2.0), b, None, None, *transposed), bias))
    x, y, z = random_arrays([a, b, bias])
    left, right = x.T if transposed[0] else x, y.T if transposed[1] else y
    (result,) = run([a, b, bias], [made], x, y, z, target=SMALL)
    np.testing.assert_allclose(result, np.maximum(2 * left @ right + z, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64"])
def test_types(dtype: str) -> None:
    """Sums of eight bits are in 32."""
    a, b = te.placeholder((20, 24), dtype, name="a"), te.placeholder((18, 24), dtype, name="b")
    wide = {"int8": "int32"}.get(dtype, dtype)
    made = topi.nn.dense(a, b, None, wide)
    x, y = random_arrays([a, b])
    (result,) = run([a, b], [made], x, y, target=SMALL)
    np.testing.assert_allclose(result, x.astype(wide) @ y.astype(wide).T, rtol=2e-2, atol=5e-2)


def test_small_grids_split_the_sum() -> None:
    """Few results of many steps: parts of the sum side by side, then their sum with the epilogue."""
    a, w = te.placeholder((1, 32, 4, 4), name="a"), te.placeholder((32, 32, 3, 3), name="w")
    made = topi.nn.relu(topi.nn.conv2d_nchw(a, w, 1, 1, 1))
    function = device_function([a, w], [made], SMALL)
    grids = [
        int(node.value)
        for node in _nodes(function, tir.AttrStmt)
        if node.attr_key == "thread_extent" and node.node.thread_tag == "blockIdx.x"
    ]
    assert len(grids) == 2 and grids[0] > 1
    x, y = random_arrays([a, w])
    (result,) = run([a, w], [made], x, y, target=SMALL)
    expected = tilewright.topi.testing.conv2d_nchw_python(x, y, 1, 1)
    np.testing.assert_allclose(result, np.maximum(expected, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_large_tiles() -> None:
    """As a large product has them, on the edge of one; with copies to shared memory that are asynchronous or not."""
    a, b = te.placeholder((70, 20), name="a"), te.placeholder((20, 66), name="b")
    x, y = random_arrays([a, b])
    for arch in ("sm_80", "sm_70"):
        target = tvm.target.Target(f"cuda -arch={arch}")
        (result,) = run([a, b], [topi.nn.matmul(a, b)], x, y, target=target)
        np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-4)


def test_batches() -> None:
    a, b = te.placeholder((3, 20, 24), name="a"), te.placeholder((3, 18, 24), name="b")
    x, y = random_arrays([a, b])
    (result,) = run([a, b], [topi.nn.batch_matmul(a, b)], x, y, target=SMALL)
    np.testing.assert_allclose(result, x @ y.swapaxes(1, 2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 1, 1, 2)]
)
def test_convolutions(stride: int, padding: int, dilation: int, groups: int) -> None:
    """Strided, dilated and grouped ones; the padding is never stored."""
    a = te.placeholder((1, 8, 9, 8), name="a")
    w = te.placeholder((16, 8 // groups, 3, 3), name="w")
    if groups == 1:
        plain = topi.nn.conv2d_nchw(a, w, stride, padding, dilation)
    else:
        plain = topi.nn.group_conv2d_nchw(a, w, stride, padding, dilation, groups)
    x, y = random_arrays([a, w])
    (result,) = run([a, w], [topi.nn.relu(plain)], x, y, target=SMALL)
    spread = np.zeros((16, 8 // groups, 2 * dilation + 1, 2 * dilation + 1), "float32")
    spread[:, :, ::dilation, ::dilation] = y
    expected = tilewright.topi.testing.conv2d_nchw_python(x, spread, stride, padding, groups)
    np.testing.assert_allclose(result, np.maximum(expected, 0), rtol=1e-4, atol=1e-4)
    function = device_function([a, w], [plain])
    assert set(_scopes(function)) <= {"shared", "local"}


def test_channels_last() -> None:
    a, w = te.placeholder((1, 7, 8, 8), name="a"), te.placeholder((3, 3, 8, 12), name="w")
    x, y = random_arrays([a, w])
    (result,) = run([a, w], [topi.nn.conv2d_nhwc(a, w, 1, 1, 1)], x, y, target=SMALL)
    expected = tilewright.topi.testing.conv2d_nhwc_python(x, y, 1, 1)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_one_dimension_and_three() -> None:
    a, w = te.placeholder((1, 8, 20), name="a"), te.placeholder((12, 8, 3), name="w")
    x, y = random_arrays([a, w])
    (result,) = run([a, w], [topi.nn.conv1d_ncw(a, w, 1, 1, 1)], x, y, target=SMALL)
    np.testing.assert_allclose(
        result, tilewright.topi.testing.conv1d_ncw_python(x, y, 1, 1, 1), rtol=1e-4, atol=1e-4
    )
    a, w = te.placeholder((1, 4, 4, 5, 6), name="a"), te.placeholder((8, 4, 3, 3, 3), name="w")
    x, y = random_arrays([a, w])
    (result,) = run([a, w], [topi.nn.conv3d_ncdhw(a, w, 1, 1, 1)], x, y, target=SMALL)
    np.testing.assert_allclose(
        result, tilewright.topi.testing.conv3d_ncdhw_python(x, y, 1, 1), rtol=1e-4, atol=1e-4
    )


def test_tiles_follow_the_grid() -> None:
    """A large product has the largest tile; a small one gives every multiprocessor a block."""
    machine = GpuMachine(32, 1024, 48 * 1024, 132, 2048)
    assert choose_tile(4096, 4096, 1, machine).thread_rows == 8
    small = choose_tile(512, 512, 1, machine)
    assert -(-512 // small.rows) * -(-512 // small.columns) >= 64


def _scopes(function: Any) -> list[str]:
    return [node.buffer_var.storage_scope for node in _nodes(function, tir.Allocate)]


def _nodes(function: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(
        function.body, lambda node: found.append(node) if isinstance(node, kind) else None
    )
    return found
