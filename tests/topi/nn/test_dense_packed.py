"""Products of matrices for x86 against NumPy, with what a fused function puts around them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.topi.scheduling import Loops, placeholder, random_feeds, run

import tilewright as tvm
from tilewright import relay, te, topi
from tilewright.contrib import graph_executor
from tilewright.topi import x86

SHAPES = [(1, 40, 64), (3, 33, 50), (8, 64, 48), (17, 100, 29), (40, 7, 16), (12, 1, 5)]


@pytest.mark.parametrize(
    "operator", [x86.dense_nopack, x86.dense_pack, x86.dense], ids=["nopack", "pack", "choice"]
)
@pytest.mark.parametrize(("rows", "units", "depth"), SHAPES)
def test_dense_with_its_epilogue(operator: Any, rows: int, units: int, depth: int) -> None:
    """Bias, residual and activation, for one row and for many."""
    data, weight = placeholder(rows, depth, name="d"), placeholder(units, depth, name="w")
    bias, residual = placeholder(units, name="b"), placeholder(rows, units, name="r")
    out = topi.nn.relu(topi.add(operator(data, weight, bias), residual))
    feeds = random_feeds(data, weight, bias, residual)
    (found,) = run(x86.schedule_dense_pack, out, feeds)
    d, w, b, r = (value.astype("float64") for value in feeds.values())
    np.testing.assert_allclose(found, np.maximum(d @ w.T + b + r, 0), rtol=1e-4, atol=1e-4)


def test_weights_that_are_packed_already() -> None:
    """Weights of three dimensions are taken as they are."""
    data, weight = placeholder(5, 30, name="d"), placeholder(2, 30, 32, name="w")
    out = topi.nn.relu(x86.dense_pack(data, weight))
    feeds = random_feeds(data, weight)
    (found,) = run(x86.schedule_dense_pack, out, feeds)
    flat = feeds[weight].transpose(0, 2, 1).reshape(64, 30)
    np.testing.assert_allclose(found, np.maximum(feeds[data] @ flat.T, 0), rtol=1e-4, atol=1e-4)
    loops = Loops(x86.schedule_dense_pack(out), [data, weight, out])
    assert "packed_weight" not in loops.text and loops.widest_store >= 16


@pytest.mark.parametrize("transpose_b", [True, False])
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "depth"), [(3, 16, 20, 8), (2, 1, 33, 17), (4, 12, 5, 64)]
)
def test_batch_matmul(batch: int, rows: int, columns: int, depth: int, transpose_b: bool) -> None:
    """Each product of a batch, its scaling applied to the tile."""
    a = placeholder(batch, rows, depth, name="a")
    b = (
        placeholder(batch, columns, depth, name="b")
        if transpose_b
        else placeholder(batch, depth, columns, name="b")
    )
    product = x86.batch_matmul(a, b, transpose_b=transpose_b)
    out = te.compute(product.shape, lambda *i: product(*i) * 0.125, name="scaled", tag="elemwise")
    feeds = random_feeds(a, b)
    (found,) = run(x86.schedule_batch_matmul, out, feeds)
    right = feeds[b].transpose(0, 2, 1) if transpose_b else feeds[b]
    np.testing.assert_allclose(found, (feeds[a] @ right) * 0.125, rtol=1e-4, atol=1e-4)


def test_half_floats_are_summed_wider() -> None:
    """The cast to float16 comes after the sum, in the same tile."""
    data, weight = (
        placeholder(4, 300, name="d", dtype="float16"),
        placeholder(32, 300, name="w", dtype="float16"),
    )
    out = x86.dense(data, weight)
    feeds = random_feeds(data, weight)
    (found,) = run(x86.schedule_dense_nopack, out, feeds)
    exact = feeds[data].astype("float64") @ feeds[weight].astype("float64").T
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=2e-2)


def test_bytes_are_summed_as_asked() -> None:
    """Eight-bit integers in, 32-bit sums out, exactly."""
    data, weight = placeholder(9, 40, name="d", dtype="int8"), placeholder(20, 40, name="w", dtype="int8")
    generator = np.random.default_rng(0)
    feeds = {
        tensor: generator.integers(-128, 127, [int(size) for size in tensor.shape]).astype("int8")
        for tensor in (data, weight)
    }
    (found,) = run(x86.schedule_dense_pack, x86.dense(data, weight, out_dtype="int32"), feeds)
    np.testing.assert_array_equal(found, feeds[data].astype("int32") @ feeds[weight].astype("int32").T)


@pytest.mark.parametrize(("rows", "depth", "units"), [(1, 24, 50), (8, 33, 257), (5, 16, 1000), (4, 7, 5)])
def test_units_that_fill_no_whole_blocks(rows: int, depth: int, units: int) -> None:
    """A layer of any number of units, built at the level at which weights are packed, with what follows it."""
    generator = np.random.default_rng(units)
    arrays = [generator.standard_normal(shape).astype("float32") for shape in ((rows, depth), (units, depth))]
    bias = generator.standard_normal(units).astype("float32")
    data, weight = (relay.var(name, shape=array.shape) for name, array in zip("xw", arrays, strict=True))
    made = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(data, weight), relay.const(bias)))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(made), "llvm", params={"w": arrays[1]})
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    executor.run(x=arrays[0])
    kernels = [node for node in json.loads(library.get_graph_json())["nodes"] if node["op"] != "null"]
    assert len(kernels) == 1
    expected = np.maximum(arrays[0].astype("float64") @ arrays[1].T + bias, 0)
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_number_of_units_that_the_blocks_do_not_hold_is_refused() -> None:
    """Two blocks of sixteen hold seventeen to thirty-two units."""
    data, weight = relay.var("x", shape=(2, 8)), relay.var("w", shape=(2, 8, 16))
    call = relay.nn.contrib_dense_pack(data, weight, "NC16n", units=16)
    with pytest.raises(tvm.TVMError, match="do not hold just 16"):
        relay.transform.InferType()(tvm.IRModule.from_expr(call))
