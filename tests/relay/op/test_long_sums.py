"""Sums of millions of float32 terms are right to five digits and more, however they are computed."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor

MILLIONS = 1 << 22
BOUND = 1e-5
"""The greatest relative error: of terms that are all 0.1, the worst case, as every addition rounds the same way."""


def compiled(function, value):
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(function), "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu()))
    model.set_input("x", value)
    model.run()
    return model.get_output(0).numpy()


def interpreted(function, value):
    module = tvm.IRModule.from_expr(function)
    return relay.create_executor("debug", module, tvm.cpu(), "llvm").evaluate()(value).numpy()


def dynamic(function, value):
    (x,) = function.params
    open_x = relay.var("x", shape=[relay.Any() for _ in x.type_annotation.shape])
    body = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([open_x], relay.bind(function.body, {x: open_x})))
    )
    return relay.create_executor("vm", body, tvm.cpu(), "llvm").evaluate()(value).numpy()


CASES = {
    "sum": ((MILLIONS,), relay.sum, np.sum),
    "rows": ((4, MILLIONS // 4), lambda x: relay.sum(x, axis=1), lambda x: x.sum(1)),
    "columns": ((MILLIONS // 4, 4), lambda x: relay.sum(x, axis=0), lambda x: x.sum(0)),
    "parallel columns": ((MILLIONS // 64, 64), lambda x: relay.sum(x, axis=0), lambda x: x.sum(0)),
    "both axes": ((2048, 2048), relay.sum, np.sum),
    "strided": (
        (MILLIONS,),
        lambda x: relay.sum(relay.strided_slice(x, [0], [MILLIONS], [3])),
        lambda x: x[::3].sum(),
    ),
    "mean": ((2, MILLIONS // 8, 4), lambda x: relay.mean(x, axis=1), lambda x: x.mean(1)),
    "norm": ((MILLIONS,), lambda x: relay.sqrt(relay.sum(x * x)), np.linalg.norm),
    "softmax": ((1, MILLIONS), relay.nn.softmax, lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()),
    "global pooling": (
        (1, 1024, 512, 8),
        lambda x: relay.nn.global_avg_pool2d(x, layout="NHWC"),
        lambda x: x.mean((1, 2), keepdims=True),
    ),
    "product": (
        (3, MILLIONS // 4),
        lambda x: relay.nn.dense(x, relay.ones((5, MILLIONS // 4), "float32")),
        lambda x: np.repeat(x.sum(1, keepdims=True), 5, 1),
    ),
}


@pytest.mark.parametrize("run", [compiled, interpreted], ids=["compiled", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_equal_terms(name, run):
    """Plain accumulation is off by 0.06 to 4 % here."""
    if name == "product" and run is interpreted:
        pytest.skip("the reference is the float32 product of NumPy's BLAS")
    shape, build, expected = CASES[name]
    x = relay.var("x", shape=shape)
    value = np.full(shape, 0.1, "float32")
    result = run(relay.Function([x], build(x)), value)
    np.testing.assert_allclose(result, expected(value.astype("float64")), rtol=BOUND)


@pytest.mark.parametrize("name", ["sum", "columns", "softmax"])
def test_dynamic_lengths(name):
    """The same where the length is known only when the program runs."""
    shape, build, expected = CASES[name]
    x = relay.var("x", shape=shape)
    value = np.full(shape, 0.1, "float32")
    result = dynamic(relay.Function([x], build(x)), value)
    np.testing.assert_allclose(result, expected(value.astype("float64")), rtol=BOUND)


@pytest.mark.parametrize("run", [compiled, interpreted], ids=["compiled", "reference"])
def test_variance(run):
    """Two sums, the second of squares of small differences."""
    x = relay.var("x", shape=(1, MILLIONS))
    value = np.random.default_rng(0).random((1, MILLIONS), dtype="float32") + 10
    result = run(relay.Function([x], relay.variance(x, axis=1)), value)
    np.testing.assert_allclose(result, value.astype("float64").var(1), rtol=BOUND)
