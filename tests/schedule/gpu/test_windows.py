"""Windows, transposes and reductions that are split over the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.gpu.device import device_function, random_arrays, run

import tilewright as tvm
import tilewright.topi.testing
from tilewright import te, tir, topi
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decisions


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("kind", "padding"), [("max", 0), ("avg", 1)])
@pytest.mark.parametrize("channels", [3, 8])
def test_pooling(layout: str, kind: str, padding: int, channels: int) -> None:
    shape = (2, channels, 9, 12) if layout == "NCHW" else (2, 9, 12, channels)
    a = te.placeholder(shape, name="a")
    made = topi.nn.pool2d(
        a, (3, 3), (2, 2), (1, 1), (padding,) * 4, kind, layout=layout, count_include_pad=True
    )
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    plain = x if layout == "NCHW" else x.transpose(0, 3, 1, 2)
    filled = np.pad(plain, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(filled, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    expected = windows.max(axis=(-1, -2)) if kind == "max" else windows.mean(axis=(-1, -2))
    expected = expected if layout == "NCHW" else expected.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 4, 8, 8), (2, 3, 7, 5)])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_global_and_adaptive_pooling(shape: tuple[int, ...], kind: str) -> None:
    a = te.placeholder(shape, name="a")
    (x,) = random_arrays([a])
    reduce = np.mean if kind == "avg" else np.max
    (result,) = run([a], [topi.nn.global_pool(a, kind)], x)
    np.testing.assert_allclose(result, reduce(x, axis=(2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    (result,) = run([a], [topi.nn.adaptive_pool(a, (1, 1), kind)], x)
    np.testing.assert_allclose(result, reduce(x, axis=(2, 3), keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [8, 7])
def test_depthwise(stride: int, width: int) -> None:
    """In both layouts, with what is fused after it."""
    a, w = te.placeholder((1, 4, 6, width), name="a"), te.placeholder((4, 1, 3, 3), name="w")
    made = topi.nn.relu(topi.nn.depthwise_conv2d_nchw(a, w, (stride, stride), (1, 1), (1, 1), None))
    x, y = random_arrays([a, w])
    expected = np.maximum(
        tilewright.topi.testing.depthwise_conv2d_python_nchw(
            np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), y, (stride, stride), "VALID"
        ),
        0,
    )
    (result,) = run([a, w], [made], x, y)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    b, v = te.placeholder((1, 6, width, 4), name="b"), te.placeholder((3, 3, 4, 1), name="v")
    made = topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(b, v, (stride, stride), (1, 1), (1, 1), None))
    (result,) = run(
        [b, v],
        [made],
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(y.transpose(2, 3, 0, 1)),
    )
    np.testing.assert_allclose(result.transpose(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "stride", "patch"),
    [(3, 1, (2, 4)), (3, 1, (4, 1)), (3, 2, (2, 2)), (3, 2, (1, 4)), (5, 1, (2, 1)), (5, 1, (1, 1))],
)
def test_patches_of_depthwise_convolutions(kernel: int, stride: int, patch: tuple[int, int]) -> None:
    """Several columns and rows in a thread, whose windows reach over the border."""
    a, w = te.placeholder((1, 8, 8, 4), name="a"), te.placeholder((kernel, kernel, 4, 1), name="w")
    strides, padding = (stride, stride), (kernel // 2, kernel // 2)
    made = topi.nn.relu(topi.nn.depthwise_conv2d_nhwc(a, w, strides, padding, (1, 1), None))
    x, y = random_arrays([a, w])
    with Decisions({"patch": patch}):
        (result,) = run([a, w], [made], x, y)
    around = ((0, 0), padding, padding, (0, 0))
    expected = tilewright.topi.testing.depthwise_conv2d_python_nhwc(np.pad(x, around), y, strides, "VALID")
    np.testing.assert_allclose(result, np.maximum(expected, 0), rtol=1e-5, atol=1e-6)


def chosen_patch(shape: tuple[int, ...], kernel: int, stride: int, dtype: str = "float16") -> tuple[int, ...]:
    """The columns and rows of a thread of a depthwise convolution on a large device."""
    a, w = te.placeholder(shape, dtype, name="a"), te.placeholder((kernel, kernel, shape[3], 1), dtype)
    made = topi.nn.depthwise_conv2d_nhwc(a, w, (stride, stride), (kernel // 2, kernel // 2), (1, 1), dtype)
    with Decisions() as decisions:
        schedule([made], tvm.target.Target("cuda -arch=sm_90a"))
    patch: tuple[int, ...] = decisions.asked["patch"].chosen
    return patch


def test_the_patch_is_as_large_as_helps() -> None:
    """Overlapping windows share what they read as long as all of it fits into registers and threads are enough."""
    assert chosen_patch((64, 112, 112, 96), 3, 1) == (4, 7)
    assert chosen_patch((64, 112, 112, 96), 3, 2) == (2, 4), "windows overlap less"
    assert chosen_patch((64, 56, 56, 144), 5, 2) == (2, 4), "more would not fit into registers"
    assert chosen_patch((32, 7, 7, 960), 3, 1) == (7, 1), "divisors of the extent only"
    assert chosen_patch((1, 14, 14, 384), 3, 1) == (1, 1), "too few threads"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((33, 40), (1, 0)),
        ((128, 64), (1, 0)),
        ((64, 64), (1, 0)),
        ((2, 9, 70), (0, 2, 1)),
        ((2, 10, 3, 12), (0, 3, 1, 2)),
        ((2, 3, 4), (2, 1, 0)),
        ((1, 8, 1, 16), (0, 3, 2, 1)),
    ],
)
def test_transposes(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    a = te.placeholder(shape, dtype, name="a")
    made = topi.add(topi.transpose(a, axes), tir.const(1, dtype))
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x)
    np.testing.assert_array_equal(result, (x + np.array(1, dtype)).transpose(axes))


def test_transposes_are_coalesced() -> None:
    """Threads that are neighbours in x read neighbouring elements, and write neighbouring elements."""
    a = te.placeholder((256, 256), name="a")
    function = device_function([a], [topi.transpose(a)])
    scopes = {node.buffer_var.storage_scope for node in _nodes(function, tir.Allocate)}
    assert scopes == {"shared"}


def _nodes(function: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(
        function.body, lambda node: found.append(node) if isinstance(node, kind) else None
    )
    return found


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4000,), 0), ((3, 2000), 1), ((3000, 4), 0), ((4, 2, 24, 40), (0, 2, 3)), ((40, 101), None)],
)
@pytest.mark.parametrize("reduce", ["sum", "argmax"])
def test_split_reductions(shape: tuple[int, ...], axis: Any, reduce: str) -> None:
    """Few results of many elements: two kernels, and many blocks in the first."""
    if reduce == "argmax" and isinstance(axis, tuple):
        pytest.skip("argmax has one axis")
    a = te.placeholder(shape, name="a")
    made = topi.multiply(topi.sum(a, axis=axis), 2.0) if reduce == "sum" else topi.argmax(a, axis=axis)
    small = tvm.target.Target("cuda -arch=sm_80 -max_num_threads=32")
    function = device_function([a], [made], small)
    grids = [
        int(node.value)
        for node in _nodes(function, tir.AttrStmt)
        if node.attr_key == "thread_extent" and node.node.thread_tag == "blockIdx.x"
    ]
    assert len(grids) == 2 and max(grids) > 1
    (x,) = random_arrays([a])
    (result,) = run([a], [made], x, target=small)
    expected = x.sum(axis=axis, dtype="float64") * 2 if reduce == "sum" else x.argmax(axis=axis)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-2)
