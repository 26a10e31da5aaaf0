"""SinkReshape: elementwise operators before the change of shape."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.testing import run_opt_pass


def sunk(expr: relay.Expr) -> relay.Function:
    """The function of an expression after the pass."""
    free = relay.analysis.free_vars(expr)
    return run_opt_pass(relay.Function(free, expr), relay.transform.SinkReshape())


def check(expr: relay.Expr, expected: relay.Expr) -> None:
    """The pass makes the one of the other, with the same variables."""
    free = relay.analysis.free_vars(expr)
    wanted = run_opt_pass(relay.Function(free, expected), relay.transform.InferType())
    assert tvm.ir.structural_equal(sunk(expr), wanted), sunk(expr).astext()


X, W = relay.var("x", shape=(6, 4)), relay.var("w", shape=(8, 4))
BIAS, SCALE = relay.var("bias", shape=(8,)), relay.var("scale", shape=(1, 1, 8))
OTHER = relay.var("other", shape=(2, 3, 8))


def test_a_chain_ends_at_the_next_product() -> None:
    """Bias and activation are computed in the product's own shape, and the two reshapes are gone."""
    wide = relay.reshape(relay.nn.dense(X, W), (2, 3, 8))
    after = relay.reshape(relay.nn.relu(relay.add(wide, BIAS)), (6, 8))
    expected = relay.nn.relu(relay.add(relay.nn.dense(X, W), BIAS))
    check(relay.tanh(after), relay.tanh(expected))


def test_operands_follow() -> None:
    """A row of more dimensions becomes one, a tensor of the whole shape is reshaped, a number stays."""
    wide = relay.reshape(relay.nn.dense(X, W), (2, 3, 8))
    made = relay.multiply(relay.add(relay.multiply(wide, SCALE), OTHER), relay.const(2.0))
    row = relay.reshape(SCALE, (8,))
    inner = relay.add(relay.multiply(relay.nn.dense(X, W), row), relay.reshape(OTHER, (6, 8)))
    check(made, relay.reshape(relay.multiply(inner, relay.const(2.0)), (2, 3, 8)))


def test_what_follows_a_product_counts_as_one() -> None:
    """A reshape of a product with its bias, as after a change of layouts: the rest moves before it, too."""
    wide = relay.reshape(relay.add(relay.nn.dense(X, W), BIAS), (1, 2, 3, 8))
    other = relay.reshape(OTHER, (1, 2, 3, 8))
    inner = relay.add(relay.nn.dense(X, W), BIAS)
    check(
        relay.add(wide, other),
        relay.reshape(relay.add(inner, relay.reshape(other, (6, 8))), (1, 2, 3, 8)),
    )


def test_one_value_in_two_places() -> None:
    """x * sigmoid(x) of a reshaped product: both operands are the product's."""
    wide = relay.reshape(relay.nn.dense(X, W), (2, 3, 8))
    product = relay.nn.dense(X, W)
    check(
        relay.multiply(wide, relay.sigmoid(wide)),
        relay.reshape(relay.multiply(product, relay.sigmoid(product)), (2, 3, 8)),
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda wide: relay.add(wide, relay.var("rows", shape=(2, 3, 1))),
        lambda wide: relay.add(wide, relay.var("more", shape=(5, 2, 3, 8))),
        lambda wide: relay.nn.softmax(wide),
        lambda wide: relay.nn.bias_add(wide, relay.var("middle", shape=(3,)), axis=1),
    ],
    ids=["a number a row", "a broadcast of the product", "a reduction", "an axis"],
)
def test_what_is_not_the_same_stays(make: object) -> None:
    """Operands that vary along the rows, results of another size, and operators that speak of axes."""
    expr = make(relay.reshape(relay.nn.dense(X, W), (2, 3, 8)))  # type: ignore[operator]
    check(expr, expr)


def test_a_reshape_that_changes_rows_stays() -> None:
    """The last axis is what bias and scale go along."""
    expr = relay.nn.relu(relay.reshape(relay.nn.dense(X, W), (2, 24)))
    check(expr, expr)


def test_the_product_and_what_follows_are_one_kernel() -> None:
    """In a build: bias, activation and residual are fused to the product, and the numbers are right."""
    generator = np.random.default_rng(3)
    made = relay.nn.relu(relay.add(relay.reshape(relay.nn.dense(X, W), (2, 3, 8)), BIAS)) + OTHER
    module = tvm.IRModule.from_expr(relay.Function([X, OTHER, W, BIAS], made))
    arrays = {
        name: generator.standard_normal(shape).astype("float32")
        for name, shape in {"x": (6, 4), "other": (2, 3, 8), "w": (8, 4), "bias": (8,)}.items()
    }
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, "llvm", params={name: arrays[name] for name in ("w", "bias")})
    kernels = [node for node in json.loads(library.get_graph_json())["nodes"] if node["op"] != "null"]
    working = [node for node in kernels if node["attrs"]["func_name"] != "__nop"]
    assert len(working) == 1
    executor = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    executor.run(x=arrays["x"], other=arrays["other"])
    wide = (arrays["x"] @ arrays["w"].T).reshape(2, 3, 8)
    expected = np.maximum(wide + arrays["bias"], 0) + arrays["other"]
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
