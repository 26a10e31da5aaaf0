"""What BNNS takes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.op.contrib import get_pattern_table
from tilewright.relay.op.contrib.bnns import partition_for_bnns  # type: ignore[import-not-found]

PART = "tvmgen_default_bnns_main_0"


def constant(*shape: int) -> relay.Constant:
    """Weights."""
    return relay.const(np.ones(shape, "float32"))


def convolution(weight: Any = None, **attributes: Any) -> relay.Expr:
    """A convolution of seven channels to eight."""
    data = relay.var("data", shape=(2, 7, 8, 8))
    return relay.nn.conv2d(data, weight or constant(8, 7, 3, 3), kernel_size=(3, 3), channels=8, **attributes)


def partitioned(expr: relay.Expr) -> tvm.IRModule:
    """The module with the library's parts as functions."""
    return partition_for_bnns(tvm.IRModule.from_expr(expr))


def text_of_part(expr: relay.Expr) -> str:
    """The part that the library takes."""
    return str(partitioned(expr)[PART])


@pytest.mark.parametrize(
    ("bias", "is_fused"), [((8,), False), ((8, 1), False), ((8, 1, 1), True), ((1, 8, 1, 1), True)]
)
def test_a_bias_is_added_for_each_channel(bias: tuple[int, ...], is_fused: bool) -> None:
    """What is added along another axis stays outside."""
    data = relay.var("data", shape=(2, 7, 10, 10))
    made = relay.nn.conv2d(data, constant(8, 7, 3, 3), kernel_size=(3, 3), channels=8)
    assert ("bnns.conv2d_bias" in text_of_part(made + constant(*bias))) == is_fused


@pytest.mark.parametrize(("axis", "is_fused"), [(1, True), (2, False)])
def test_bias_add_by_axis(axis: int, is_fused: bool) -> None:
    """The axis of channels is the second."""
    data = relay.var("data", shape=(2, 7, 10, 10))
    made = relay.nn.conv2d(data, constant(8, 7, 3, 3), kernel_size=(3, 3), channels=8)
    made = relay.nn.bias_add(made, constant(8), axis=axis)
    assert ("nn.bias_add" in text_of_part(made)) == is_fused


@pytest.mark.parametrize(
    ("activation", "name"), [(relay.nn.relu, "conv2d_bias_relu"), (relay.sigmoid, "conv2d_bias_sigmoid")]
)
def test_activations(activation: Any, name: str) -> None:
    """The longest group is taken."""
    made = activation(relay.nn.bias_add(convolution(), constant(8)))
    assert f'Composite="bnns.{name}"' in text_of_part(made)


def test_weights_are_constant() -> None:
    """Weights that are an argument stay outside; parameters are constants."""
    weight = relay.var("weight", shape=(8, 7, 3, 3))
    module = tvm.IRModule.from_expr(convolution(weight))
    assert len(partition_for_bnns(module).get_global_vars()) == 1
    params = {"weight": np.ones((8, 7, 3, 3), "float32")}
    assert len(partition_for_bnns(module, params).get_global_vars()) == 2


def test_named_before_a_target() -> None:
    """``tvmc`` has its partition under the library's name."""
    found = tvmc.composite_target.get_codegen_by_target("bnns")["pass_pipeline"]
    made = found(tvm.IRModule.from_expr(convolution()), None)
    assert made[PART].attrs["Compiler"] == "bnns"


def test_other_operators() -> None:
    """Pooling, products and what is not supported."""
    made = relay.nn.max_pool2d(convolution(), (2, 2))
    assert "nn.max_pool2d" in text_of_part(made)
    dense = relay.nn.bias_add(relay.nn.dense(relay.var("x", shape=(2, 4)), constant(3, 4)), constant(3))
    assert "bnns.dense_bias" in text_of_part(dense)
    assert len(partitioned(relay.exp(relay.var("x", shape=(2, 4)))).get_global_vars()) == 1
    assert get_pattern_table("bnns")[0][0] == "bnns.conv2d_bias_relu"
