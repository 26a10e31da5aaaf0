"""The default schedule: any graph, any shape, the same numbers as plain loops; vectors and threads where they pay."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.topi.running import evaluate
from tests.topi.scheduling import Loops, check_against_plain_loops, placeholder, random_feeds, run

import tilewright as tvm
from tilewright import te, tir, topi
from tilewright.te import Tensor
from tilewright.topi import generic
from tilewright.topi.generic import default_schedule, schedule_default

Graph = tuple[Any, list[Tensor]]


def elementwise_chain() -> Graph:
    x, bias = placeholder(3, 37, 11), placeholder(37, name="bias")
    shifted = te.compute(x.shape, lambda i, j, k: x[i, j, k] + bias[j], name="shifted")
    return te.compute(x.shape, lambda *i: te.exp(shifted(*i)) * shifted(*i), name="out"), [x, bias]


def transposed_and_padded() -> Graph:
    x = placeholder(5, 33)
    padded = te.compute(
        (35, 7),
        lambda i, j: te.if_then_else(tir.all(i >= 1, i < 34, j >= 1, j < 6), x[j - 1, i - 1], 0.0),
        name="padded",
    )
    return te.compute((35, 7), lambda i, j: padded[i, j] * 2.0, name="out"), [x]


def sums() -> Graph:
    x = placeholder(6, 50, 9)
    k, m = te.reduce_axis((0, 50), name="k"), te.reduce_axis((0, 9), name="m")
    rows = te.compute((6, 50), lambda i, j: te.sum(x[i, j, m], axis=m), name="rows")
    return te.compute((6,), lambda i: te.max(rows[i, k], axis=k), name="out"), [x]


def sum_of_everything() -> Graph:
    x = placeholder(17, 23)
    k, m = te.reduce_axis((0, 17), name="k"), te.reduce_axis((0, 23), name="m")
    return te.compute((), lambda: te.sum(te.exp(x[k, m]), axis=[k, m]), name="out"), [x]


def softmax_over_the_first_axis() -> Graph:
    x = placeholder(9, 4, 21)
    return topi.nn.softmax(x, axis=0), [x]


def layer_norm() -> Graph:
    x, gain, shift = placeholder(13, 70), placeholder(70, name="g"), placeholder(70, name="h")
    return topi.nn.layer_norm(x, gain, shift, [1]), [x, gain, shift]


def padded_pool() -> Graph:
    x = placeholder(2, 3, 13, 13)
    pooled = topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    return topi.nn.relu(pooled), [x]


def two_outputs_of_one_product() -> Graph:
    a, b = placeholder(9, 20, name="a"), placeholder(20, 33, name="b")
    product = topi.nn.matmul(a, b)
    return [topi.nn.relu(product), topi.tanh(product)], [a, b]


def one_output_reads_another() -> Graph:
    x = placeholder(40, 5)
    first = te.compute((40, 5), lambda i, j: x[i, j] + 1.0, name="first")
    return [first, te.compute((40, 5), lambda i, j: first[i, j] * x[i, j], name="second")], [x]


def argmax_of_rows() -> Graph:
    x = placeholder(7, 30)
    return topi.argmax(x, axis=1), [x]


def product_with_both_transposed() -> Graph:
    a, b = placeholder(30, 19, name="a"), placeholder(35, 30, name="b")
    return topi.nn.matmul(a, b, transpose_a=True, transpose_b=True), [a, b]


def extern_between() -> Graph:
    x = placeholder(6, 8)
    doubled = te.compute((6, 8), lambda i, j: x[i, j] * 2.0, name="doubled")
    return topi.cumsum(doubled, axis=1), [x]


def scan() -> Graph:
    x = placeholder(12, 10)
    state = te.placeholder((12, 10))
    start = te.compute((1, 10), lambda _, i: x[0, i] * 2.0, name="start")
    step = te.compute((12, 10), lambda t, i: state[t - 1, i] + x[t, i], name="step")
    update = te.compute((12, 10), lambda t, i: step[t, i] * 0.5, name="update")
    return te.scan(start, update, state, inputs=[x]), [x]


def resized() -> Graph:
    x = placeholder(1, 2, 5, 6)
    return topi.image.resize2d(x, (10, 9), "NCHW", "linear"), [x]


GRAPHS: list[Callable[[], Graph]] = [
    elementwise_chain,
    transposed_and_padded,
    sums,
    sum_of_everything,
    softmax_over_the_first_axis,
    layer_norm,
    padded_pool,
    two_outputs_of_one_product,
    one_output_reads_another,
    argmax_of_rows,
    product_with_both_transposed,
    extern_between,
    scan,
    resized,
]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_graphs_of_every_kind(graph: Callable[[], Graph]) -> None:
    """Scheduled, a graph computes what its plain loops do."""
    outputs, placeholders = graph()
    check_against_plain_loops(schedule_default, outputs, random_feeds(*placeholders))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (2, 1, 3), (0, 4), (65,)])
def test_shapes_without_much_in_them(shape: tuple[int, ...]) -> None:
    """No dimension, dimensions of one, none at all."""
    x = placeholder(*shape)
    out = te.compute(shape, lambda *i: te.exp(x(*i)), name="out")
    (found,) = run(schedule_default, out, feeds := random_feeds(x))
    np.testing.assert_allclose(found, np.exp(feeds[x]), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 6, 40])
def test_symbolic_batch_of_a_product(rows: int) -> None:
    """One program for every number of rows."""
    n = te.size_var("n")
    a, b = placeholder(n, 24, name="a"), placeholder(24, 33, name="b")
    out = topi.nn.relu(topi.nn.matmul(a, b))
    generator = np.random.default_rng(rows)
    left, right = (generator.standard_normal(shape).astype("float32") for shape in ((rows, 24), (24, 33)))
    (found,) = run(schedule_default, out, {a: left, b: right}, shapes=[(rows, 33)])
    np.testing.assert_allclose(found, np.maximum(left @ right, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=haswell"])
@pytest.mark.parametrize(
    "graph", [layer_norm, padded_pool, product_with_both_transposed], ids=lambda g: g.__name__
)
def test_narrower_vectors(graph: Callable[[], Graph], target: str) -> None:
    """The same code makes tiles for SSE and AVX2."""
    outputs, placeholders = graph()
    feeds = random_feeds(*placeholders)
    (found,) = run(schedule_default, outputs, feeds, target)
    np.testing.assert_allclose(found, evaluate(outputs, feeds), rtol=1e-4, atol=1e-4)


def test_large_elementwise_work_is_parallel_and_in_vectors() -> None:
    """Contiguous axes become one, with wide stores and threads."""
    x = placeholder(8, 7, 7, 64)
    out = te.compute(x.shape, lambda *i: te.exp(x(*i)), name="out")
    loops = Loops(schedule_default(out), [x, out])
    assert loops.parallel == 1 and loops.widest_store >= 16


def padded_convolution(channels: int, groups: int, size: int, stride: int) -> tuple[Tensor, list[Tensor]]:
    x = placeholder(1, channels // 16, size, size, 16)
    w = placeholder(channels // 16, channels // 16 // groups, 3, 3, 16, 16, name="w")
    return topi.nn.conv2d_NCHWc(x, w, stride, 1, 1, "NCHW16c", "NCHW16c"), [x, w]


@pytest.mark.parametrize(
    ("channels", "groups", "size", "stride", "most"),
    [(64, 4, 28, 2, 29 * 29 * 16), (32, 1, 28, 2, 5 * 29 * 32), (32, 1, 20, 1, 6 * 22 * 32)],
)
def test_padding_is_computed_in_slices(channels: int, groups: int, size: int, stride: int, most: int) -> None:
    """By groups, or by rows with those that the windows reach into: in the parallel loop that reads it."""
    out, inputs = padded_convolution(channels, groups, size, stride)
    with tvm.target.Target("llvm -mcpu=skylake-avx512 -num-cores=2"):
        loops = Loops(schedule_default(out), [*inputs, out])
    (elements,) = re.findall(r"pad_temp = T.allocate\(\[(\d+)\]", loops.text)
    assert int(elements) <= most and loops.parallel == 1
    check_against_plain_loops(schedule_default, out, random_feeds(*inputs))


@pytest.mark.parametrize("cores", [2, 16])
def test_parallel_loops_do_not_depend_on_the_number_of_cores(cores: int) -> None:
    """Code that was made for two cores has iterations for sixteen."""
    x = placeholder(6, 40, 40, 16)
    out = te.compute(x.shape, lambda *i: te.exp(x(*i)) + te.max(x(*i), 0.0), name="out")
    x2 = placeholder(1, 6, 40, 40, 16, name="images")
    pooled = topi.nn.pool2d(x2, [2, 2], [1, 1], [1, 1], [0, 0, 0, 0], "max", layout="NCHW16c")
    for tensors in ([x, out], [x2, pooled]):
        with tvm.target.Target(f"llvm -mcpu=skylake-avx512 -num-cores={cores}"):
            text = Loops(schedule_default(tensors[-1]), tensors).text
        (count,) = re.findall(r"T.parallel\((\d+)\)", text)
        assert int(count) >= 16


def test_small_work_stays_on_one_thread() -> None:
    """A hundred elements are done before a thread wakes."""
    x = placeholder(100)
    out = te.compute((100,), lambda i: x[i] + 1.0, name="out")
    assert Loops(schedule_default(out), [x, out]).parallel == 0


def test_expensive_values_that_a_reduction_reads_often_are_computed_once() -> None:
    """``exp`` before a product is a stage of its own; an addition of rows is not."""
    x, w = placeholder(64, 32), placeholder(32, 48, name="w")
    raised = te.compute((64, 32), lambda i, j: te.exp(x[i, j]), name="raised")
    out = topi.nn.matmul(raised, w)
    assert "raised = T.allocate" in Loops(schedule_default(out), [x, w, out]).text
    k = te.reduce_axis((0, 32), name="k")
    total = te.compute((64,), lambda i: te.sum(raised[i, k], axis=k), name="total")
    assert "raised" not in Loops(schedule_default(total), [x, total]).text


def test_values_that_double_at_each_step_do_not_grow_without_end() -> None:
    """Thirty steps that read the last one twice would be 2**30 terms, were all of them put into one expression."""
    x = placeholder(16)
    value = x
    for number in range(30):
        last = value
        value = te.compute((16,), lambda i, t=last: t[i] * 0.5 + t[i] * 0.25, name=f"step{number}")
    (found,) = run(schedule_default, value, feeds := random_feeds(x))
    np.testing.assert_allclose(found, feeds[x] * 0.75**30, rtol=1e-4)


def test_default_schedule_leaves_loops_plain() -> None:
    """``default_schedule`` inlines on request and does nothing else."""
    outputs, placeholders = elementwise_chain()
    inlined = Loops(default_schedule([outputs], auto_inline=True), [*placeholders, outputs])
    assert inlined.widest_store == 1 and inlined.parallel == 0 and "shifted" not in inlined.text
    assert "shifted" in Loops(default_schedule(outputs, auto_inline=False), [*placeholders, outputs]).text


def test_a_target_may_bring_its_own_schedule() -> None:
    """What a target registers is used under it alone."""
    x = placeholder(8)
    out = te.compute((8,), lambda i: x[i] + 1.0, name="out")
    plain = generic.schedule_lrn.fdefault
    generic.schedule_lrn.register("hexagon", lambda outs: "other")
    try:
        with tvm.target.Target("hexagon"):
            assert generic.schedule_lrn(out) == "other"
        assert isinstance(generic.schedule_lrn([out]), te.Schedule) and plain.__name__ == "schedule_lrn"
    finally:
        del generic.schedule_lrn.dispatch_dict["hexagon"]
