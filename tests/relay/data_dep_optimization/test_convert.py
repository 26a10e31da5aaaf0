"""Functions and parameters that change together give what they gave before."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.relay import data_dep_optimization
from tilewright.relay.testing import count_ops

RNG = np.random.default_rng(3)


def run(func: relay.Function, params: dict[str, Any], **inputs: Any) -> np.ndarray:
    """What the compiled function gives."""
    return relay.create_executor("graph", tvm.IRModule.from_expr(func)).evaluate()(**inputs, **params).numpy()


def sparse(*shape: int) -> np.ndarray:
    """Rows that are mostly zeros."""
    made = RNG.normal(size=shape).astype("float32")
    made[RNG.random(shape[0]) < 0.8] = 0
    made[0] = 1
    return made


def test_dense() -> None:
    """A weight with zeros enough is stored as blocks; a full one, or one that is not asked for, stays."""
    x, w, v = relay.var("x", shape=(3, 16)), relay.var("w", shape=(32, 16)), relay.var("v", shape=(8, 32))
    func = relay.Function([x, w, v], relay.nn.dense(relay.nn.dense(x, w), v))
    weights = {
        "w": tvm.nd.array(sparse(32, 16)),
        "v": tvm.nd.array(RNG.normal(size=(8, 32)).astype("float32")),
    }
    data = RNG.normal(size=(3, 16)).astype("float32")
    expected = run(func, weights, x=data)
    made, params = data_dep_optimization.bsr_dense.convert(func, dict(weights), (1, 1), 0.5)
    assert sorted(params) == ["v", "w.data", "w.indices", "w.indptr"]
    assert count_ops(made) == {"nn.sparse_dense": 1, "nn.dense": 1}
    np.testing.assert_allclose(run(made, params, x=data), expected, rtol=1e-4, atol=1e-5)
    kept, params = data_dep_optimization.bsr_dense.convert(
        func, dict(weights), (1, 1), 0.5, lambda weight: False
    )
    assert sorted(params) == ["v", "w"]
    assert count_ops(kept) == {"nn.dense": 2}


def test_conv2d() -> None:
    """A convolution of one element with a sparse weight."""
    x, w = relay.var("x", shape=(1, 4, 4, 8)), relay.var("w", shape=(1, 1, 8, 16))
    func = relay.Function([x, w], relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"))
    weights = {"w": tvm.nd.array(sparse(16, 8).T.reshape(1, 1, 8, 16).copy())}
    data = RNG.normal(size=(1, 4, 4, 8)).astype("float32")
    expected = run(func, weights, x=data)
    made, params = data_dep_optimization.bsr_conv2d.convert(func, dict(weights), (1, 1), 0.5, "NHWC")
    assert count_ops(made) == {"nn.sparse_conv2d": 1}
    np.testing.assert_allclose(run(made, params, x=data), expected, rtol=1e-4, atol=1e-5)


def test_transposed_weights() -> None:
    """A weight that was transposed at run time is a parameter of its own."""
    x, w = relay.var("x", shape=(3, 4)), relay.var("w", shape=(4, 5))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, axes=[1, 0])))
    weights = {"w": tvm.nd.array(RNG.normal(size=(4, 5)).astype("float32"))}
    data = RNG.normal(size=(3, 4)).astype("float32")
    made, params = data_dep_optimization.simplify_fc_transpose.convert(func, dict(weights))
    assert list(params) == ["w.T"]
    assert count_ops(made) == {"nn.dense": 1}
    np.testing.assert_allclose(run(made, params, x=data), data @ weights["w"].numpy(), rtol=1e-4, atol=1e-5)
