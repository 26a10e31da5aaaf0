"""WidenHalf: float16 models compute in float32 on CPUs; weights that only take time to be read stay in float16."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor

RANDOM = np.random.default_rng(4)


def half(*shape: int) -> Any:
    """Small random numbers."""
    return (RANDOM.standard_normal(shape) * 0.2).astype("float16")


def network() -> tvm.IRModule:
    """A convolution, an activation, a norm by hand, and a dense layer, all in float16."""
    x = relay.var("x", shape=(1, 8, 6, 6), dtype="float16")
    body = relay.nn.conv2d(x, relay.const(half(16, 8, 3, 3)), padding=1, channels=16, kernel_size=3)
    body = relay.nn.relu(relay.nn.bias_add(body, relay.const(half(16))))
    rows = relay.reshape(relay.transpose(body, (0, 2, 3, 1)), (36, 16))
    rows = relay.subtract(rows, relay.mean(rows, axis=1, keepdims=True))
    made = relay.nn.dense(rows, relay.const(half(8, 16)))
    return tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.nn.softmax(made), made])))


def optimized(module: tvm.IRModule, level: int = 3) -> str:
    """The text of an optimised program."""
    with tvm.transform.PassContext(opt_level=level):
        return str(relay.optimize(module, "llvm", {})[0])


def test_a_network_computes_in_float32() -> None:
    """Only the input and the outputs are float16, and they are nearer to float64's than the definition's."""
    module = network()
    text = optimized(module)
    assert "conv2d" in text
    # The parameter, the results, and the two casts that give those.
    assert text.count("float16") == 7
    data = half(1, 8, 6, 6)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, "llvm")
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    executor.set_input(x=data)
    executor.run()
    expected = relay.create_executor("debug", module).evaluate()(data)
    for place in range(2):
        found = executor.get_output(place).numpy()
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected[place].numpy(), rtol=4e-3, atol=4e-3)


def test_a_weight_that_is_read_once_stays() -> None:
    """The weight of a product of one row is float16 in memory; that of many rows is float32."""
    weight = relay.const(half(64, 32))

    def product(rows: int) -> str:
        x = relay.var("x", shape=(rows, 32), dtype="float16")
        made = relay.nn.dense(relay.nn.relu(relay.nn.dense(x, relay.const(half(32, 32)))), weight)
        return optimized(tvm.IRModule.from_expr(relay.Function([x], made)))

    assert product(1).count("float16] */)") + product(1).count("float16] */,") >= 2
    assert "Constant][0] /* ty=Tensor[(1, 32, 32), float16]" not in product(64)


def test_what_only_moves_data_stays() -> None:
    """Without products, float16 is half the bytes."""
    x = relay.var("x", shape=(4, 32), dtype="float16")
    text = optimized(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.relu(x)))))
    assert "float32" not in text


def test_low_levels_round_as_the_model_says() -> None:
    """Below level 3 every operator gives float16."""
    assert "float32" not in optimized(network(), 2)
