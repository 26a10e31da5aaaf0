"""bias_add becomes add, prelu a choice."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.relay.transform.checks import check, operators

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


@pytest.mark.parametrize(("axis", "extent"), [(1, 4), (3, 5), (-1, 5), (0, 2), (-2, 3)])
def test_bias_along_every_axis(axis: int, extent: int) -> None:
    """The bias gets the axes behind it."""
    x, bias = relay.var("x", shape=(2, 4, 3, 5)), relay.var("bias", shape=(extent,))
    made = check(transform.CanonicalizeOps(), relay.nn.bias_add(x, bias, axis))
    behind = 3 - axis % 4
    assert operators(made) == (["expand_dims", "add"] if behind else ["add"])


def test_the_expanded_form() -> None:
    """For channels in the second place."""
    x, bias = relay.var("x", shape=(2, 4, 3, 5)), relay.var("bias", shape=(4,))
    check(
        transform.CanonicalizeOps(),
        relay.Function([x, bias], relay.nn.bias_add(x, bias)),
        relay.Function([x, bias], x + relay.expand_dims(bias, 1, 2)),
    )


@pytest.mark.parametrize(("axis", "extent"), [(1, 4), (-1, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_prelu_along_an_axis(axis: int, extent: int, dtype: str) -> None:
    """The slopes are multiplied in where an element is below zero."""
    x = relay.var("x", shape=(2, 4, 3, 5), dtype=dtype)
    made = check(
        transform.CanonicalizeOps(),
        relay.nn.prelu(x, relay.var("alpha", shape=(extent,), dtype=dtype), axis),
    )
    assert [one for one in operators(made) if one != "expand_dims"] == ["less", "multiply", "where"]


def test_prelu_between_convolutions_keeps_their_blocks() -> None:
    """The first convolution applies it, and no layout transform is left between the two."""
    x = relay.var("x", shape=(1, 32, 14, 14))
    weight = relay.const(np.ones((32, 32, 3, 3), "float32"))
    made = relay.nn.prelu(relay.nn.conv2d(x, weight, padding=(1, 1)), relay.const(np.ones(32, "float32")))
    made = relay.nn.conv2d(made, weight, padding=(1, 1))
    module = tvm.IRModule.from_expr(relay.Function([x], made))
    with tvm.transform.PassContext(opt_level=3):
        graph = json.loads(relay.build(module, "llvm -mcpu=core-avx2").get_graph_json())
    kernels = [node["attrs"]["func_name"] for node in graph["nodes"] if node["op"] != "null"]
    assert len(kernels) == 4
    assert "_where" in kernels[1] and "conv2d" in kernels[1]
