"""The plain schedule for devices with threads: every store is made by a thread, and the results are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
import tilewright.topi.testing
from tilewright import te, topi
from tilewright.schedule import gpu, schedule
from tilewright.support.errors import ScheduleError
from tilewright.te import Tensor
from tilewright.tir.analysis import verify_memory
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import AttrStmt
from tilewright.tir.stmt_functor import post_order_visit

CUDA = tvm.target.Target("cuda")
Graph = tuple[list[Tensor], Tensor, Callable[..., Any]]


def elementwise() -> Graph:
    a = te.placeholder((5, 7), name="a")
    return [a], topi.exp(topi.nn.relu(a)), lambda x: np.exp(np.maximum(x, 0))


def broadcast() -> Graph:
    a, b = te.placeholder((4, 1, 3), name="a"), te.placeholder((5, 1), name="b")
    return [a, b], topi.add(a, b), lambda x, y: x + y


def reduction() -> Graph:
    a = te.placeholder((4, 300), name="a")
    return [a], topi.sum(a, axis=1), lambda x: x.sum(axis=1)


def scalar() -> Graph:
    a = te.placeholder((30,), name="a")
    return [a], topi.multiply(topi.max(a), 2.0), lambda x: x.max() * 2


def softmax() -> Graph:
    a = te.placeholder((3, 11), name="a")

    def expected(x: Any) -> Any:
        raised = np.exp(x - x.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    return [a], topi.nn.softmax(a), expected


def conv2d() -> Graph:
    a, w = te.placeholder((1, 3, 6, 6), name="a"), te.placeholder((4, 3, 3, 3), name="w")
    made = topi.nn.relu(topi.nn.conv2d_nchw(a, w, 1, 1, 1))

    def expected(x: Any, y: Any) -> Any:
        return np.maximum(topi.testing.conv2d_nchw_python(x, y, 1, 1), 0)

    return [a, w], made, expected


def dense() -> Graph:
    a, w = te.placeholder((5, 8), name="a"), te.placeholder((6, 8), name="w")
    return [a, w], topi.nn.dense(a, w), lambda x, y: x @ y.T


def batch_matmul() -> Graph:
    a, w = te.placeholder((2, 5, 8), name="a"), te.placeholder((2, 6, 8), name="w")
    return [a, w], topi.nn.batch_matmul(a, w), lambda x, y: x @ y.swapaxes(1, 2)


def pool() -> Graph:
    a = te.placeholder((1, 2, 6, 6), name="a")
    made = topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    return [a], made, lambda x: x.reshape(1, 2, 3, 2, 3, 2).max(axis=(3, 5))


def transpose() -> Graph:
    a = te.placeholder((3, 4, 5), name="a")
    return [a], topi.transpose(a, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)


def channels_last() -> Graph:
    """Tiles of a whole axis and of a divisor of one, and tiles that are not full."""
    a = te.placeholder((1, 9, 2, 134), name="a")
    return [a], topi.transpose(a, (0, 2, 3, 1)), lambda x: x.transpose(0, 2, 3, 1)


def odd_rows() -> Graph:
    """Vectors go on from row to row, and the last one is not full."""
    a, b = te.placeholder((7, 13), name="a"), te.placeholder((7, 13), name="b")
    return [a, b], topi.add(a, b), np.add


def concatenate() -> Graph:
    a, b = te.placeholder((3, 4), name="a"), te.placeholder((3, 2), name="b")
    return [a, b], topi.concatenate((a, b), axis=1), lambda x, y: np.concatenate((x, y), axis=1)


GRAPHS = [
    *(elementwise, broadcast, reduction, scalar, softmax, conv2d, dense),
    *(batch_matmul, pool, transpose, channels_last, odd_rows, concatenate),
]


def threads_of(function: Any) -> dict[str, list[int]]:
    """The extents of the thread axes, kernel by kernel."""
    found: dict[str, list[int]] = {}

    def visit(node: Any) -> None:
        if isinstance(node, AttrStmt) and node.attr_key == "thread_extent":
            found.setdefault(node.node.thread_tag, []).append(int(node.value))

    post_order_visit(function.body, visit)
    return found


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_store_is_made_by_a_thread(graph: Callable[[], Graph]) -> None:
    """The host touches no memory of the device, and the values are those of NumPy."""
    inputs, output, expected = graph()
    module = tvm.lower(schedule(output, CUDA), [*inputs, output], name="main")
    function = module["main"]
    assert verify_memory(function.with_attr("target", CUDA))
    random = np.random.default_rng(1)
    arrays = [
        random.standard_normal([int(extent) for extent in one.shape]).astype("float32") for one in inputs
    ]
    result = np.zeros([int(extent) for extent in output.shape], "float32")
    interpret(function, *arrays, result)
    np.testing.assert_allclose(result, expected(*arrays), rtol=1e-5, atol=1e-6)


def test_blocks_of_threads() -> None:
    """Vectors of four elements are dealt out to blocks of as many threads as the target has, at most 256; the last one
    may be partly empty."""
    a = te.placeholder((3, 1000))
    made = topi.exp(a)
    for text, threads in (("cuda", 256), ("cuda -max_num_threads=64", 64), ("opencl", 256)):
        target = tvm.target.Target(text)
        function = tvm.lower(schedule(made, target), [a, made], name="main")["main"]
        assert threads_of(function) == {
            "blockIdx.x": [-(-750 // threads)],
            "threadIdx.x": [threads],
        }


def test_odd_rows_are_read_as_vectors() -> None:
    """A row of an odd number of elements does not make every access a single one."""
    (a, b), made, _ = odd_rows()
    ptx = tvm.build(schedule(made, CUDA), [a, b, made], CUDA).imported_modules[0].get_source("ptx")
    assert "ld.global.nc.v4" in ptx


def test_unknown_extents() -> None:
    """A kernel for any number of rows."""
    n = te.var("n")
    a = te.placeholder((n, 3))
    made = topi.exp(a)
    function = tvm.lower(schedule(made, CUDA), [a, made], name="main")["main"]
    assert verify_memory(function.with_attr("target", CUDA))


def test_calls_of_the_host_are_refused() -> None:
    """The error names the operator and where it can run."""
    a = te.placeholder((4, 5))
    made = te.extern(
        (4, 5), [a], lambda ins, outs: tvm.tir.call_packed("tests.anything", ins[0], outs[0]), name="anything"
    )
    with pytest.raises(ScheduleError, match="anything has no GPU kernel.*functions of the host.*CPU"):
        schedule(made, CUDA)


def test_statements_get_threads() -> None:
    """A loop that is marked parallel, or whose iterations are independent, has a thread for each of them."""
    a = te.placeholder((300, 5), name="a")
    made = topi.sort(a)
    function = tvm.lower(schedule(made, CUDA), [a, made], name="main")["main"]
    assert verify_memory(function.with_attr("target", CUDA))
    assert threads_of(function)["blockIdx.x"] == [3]


def test_statements_that_bind_threads_stay_as_they_are() -> None:
    """Whoever writes statements for the device binds its threads."""

    def body(ins: Any, outs: Any) -> Any:
        builder = tvm.tir.ir_builder.create()
        thread = te.thread_axis("threadIdx.x")
        builder.scope_attr(thread, "thread_extent", 8)
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        target[thread] = source[thread] + 1.0
        return builder.get()

    a = te.placeholder((8,), name="a")
    made = te.extern([a.shape], [a], body, name="plus_one", dtype="float32")
    function = tvm.lower(schedule(made, CUDA), [a, made], name="main")["main"]
    assert verify_memory(function.with_attr("target", CUDA))


def test_no_elements() -> None:
    """Nothing to launch."""
    a = te.placeholder((0, 3))
    made = topi.exp(a)
    assert tvm.lower(schedule(made, CUDA), [a, made], name="main") is not None


def test_what_one_thread_does_is_said() -> None:
    """Updates at indices that are data are made in order, by one thread; rows are sorted side by side."""
    data, indices = te.placeholder((8,)), te.placeholder((3,), "int64")
    made = topi.scatter(data, indices, te.placeholder((3,)), 0)
    with CUDA:
        assert gpu.SCHEDULER.name_for(made) == "gpu, one thread"
        assert gpu.SCHEDULER.name_for(topi.sort(te.placeholder((5, 9)))) == "gpu"
