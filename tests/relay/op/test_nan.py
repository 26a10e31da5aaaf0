"""NaN propagates through minima and maxima of every kind, compiled and folded, and minus infinity is a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor

NAN, INF = np.float32("nan"), np.float32("inf")


def both(exprs: list[Any], **inputs: Any) -> list[list[Any]]:
    """The values of expressions by machine code, and by constant folding."""
    variables = relay.analysis.free_vars(relay.Tuple(exprs))
    function = relay.Function(variables, relay.Tuple(exprs))
    library = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.run(**inputs)
    compiled = [module.get_output(number).numpy() for number in range(len(exprs))]
    constants = {variable: relay.const(inputs[variable.name_hint]) for variable in variables}
    folded = [relay.transform.FoldConstantExpr(relay.bind(expr, constants)).data.numpy() for expr in exprs]
    return [compiled, folded]


def image(*shape: int) -> Any:
    """Numbers, a block of minus infinity and a few NaN."""
    random = np.random.default_rng(7)
    data = random.standard_normal(shape).astype("float32")
    data[:, 0] = -INF
    flat = data[:, 1].reshape(-1)
    flat[random.integers(0, flat.size, 3)] = NAN
    data[:, 1] = flat.reshape(data[:, 1].shape)
    return data


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_pooling(dimensions: int) -> None:
    """As PyTorch: a window with a NaN is NaN, one of minus infinity is minus infinity, and padding never wins."""
    data = image(1, 3, *(11, 9, 7)[:dimensions])
    x = relay.var("x", shape=data.shape)
    given = torch.from_numpy(data)
    names = {1: "1d", 2: "2d", 3: "3d"}[dimensions]
    exprs = [
        getattr(relay.nn, f"max_pool{names}")(
            x, (3,) * dimensions, (2,) * dimensions, padding=(1,) * dimensions
        ),
        getattr(relay.nn, f"adaptive_max_pool{names}")(x, (4,) * dimensions),
    ]
    wanted = [
        getattr(torch.nn.functional, f"max_pool{names}")(given, 3, 2, 1).numpy(),
        getattr(torch.nn.functional, f"adaptive_max_pool{names}")(given, 4).numpy(),
    ]
    if dimensions == 2:
        exprs.append(relay.nn.global_max_pool2d(x))
        wanted.append(data.max(axis=(2, 3), keepdims=True))
    for values in both(exprs, x=data):
        for found, expected in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_elementwise_and_reduced() -> None:
    """As NumPy, with lengths that leave a rest after whole vectors."""
    random = np.random.default_rng(8)
    a, b = (random.standard_normal((5, 37)).astype("float32") for _ in range(2))
    a[random.random(a.shape) < 0.1] = NAN
    b[random.random(b.shape) < 0.1] = NAN
    a[3], a[4] = -INF, 1
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    exprs = [
        relay.maximum(x, y),
        relay.minimum(x, y),
        relay.nn.relu(x),
        relay.clip(x, -0.5, 0.5),
        *(
            getattr(relay, name)(x, axis=axis)
            for name in ("max", "min", "argmax", "argmin")
            for axis in (0, 1)
        ),
        relay.nn.softmax(x),
    ]
    with np.errstate(all="ignore"):
        raised = np.exp(a - a.max(axis=1, keepdims=True))
        wanted = [
            np.maximum(a, b),
            np.minimum(a, b),
            np.maximum(a, 0),
            np.clip(a, -0.5, 0.5),
            *(getattr(a, name)(axis=axis) for name in ("max", "min", "argmax", "argmin") for axis in (0, 1)),
            raised / raised.sum(axis=1, keepdims=True),
        ]
        for values in both(exprs, x=a, y=b):
            for found, expected in zip(values, wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5)
