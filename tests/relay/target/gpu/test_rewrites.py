"""Graphs for GPUs: what becomes one kernel, and in which layout."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay

TARGET = "cuda -arch=sm_90a"


def kernels(function: Any) -> list[str]:
    """The names of the functions that a graph calls."""
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(tvm.IRModule.from_expr(function), TARGET)
    nodes = json.loads(built.get_graph_json())["nodes"]
    called = [node["attrs"]["func_name"] for node in nodes if node["op"] == "tvm_op"]
    return [name for name in called if name != "__nop"]


def constant(*shape: int, dtype: str = "float16") -> Any:
    return relay.const(np.random.default_rng(0).standard_normal(shape).astype(dtype) / 8)


def test_convolutions_have_channels_last() -> None:
    """Between convolutions no layout changes; depthwise ones too."""
    data = relay.var("data", shape=(1, 16, 8, 8), dtype="float16")
    made = relay.nn.conv2d(data, constant(32, 16, 3, 3), padding=(1, 1), kernel_size=(3, 3), channels=32)
    made = relay.nn.conv2d(
        relay.nn.relu(made), constant(32, 1, 3, 3), groups=32, padding=(1, 1), kernel_size=(3, 3)
    )
    made = relay.nn.conv2d(relay.nn.relu(made), constant(16, 32, 1, 1), kernel_size=(1, 1), channels=16)
    called = kernels(relay.Function([data], made))
    assert sum("conv2d" in name for name in called) == 3
    assert sum("layout_transform" in name and "conv2d" not in name for name in called) <= 2


def test_channels_of_depthwise_weights_are_adjacent() -> None:
    """So that a thread loads the weights of eight channels at once."""
    data = relay.var("data", shape=(1, 32, 8, 8), dtype="float16")
    made = relay.nn.conv2d(data, constant(32, 1, 3, 3), groups=32, padding=(1, 1), kernel_size=(3, 3))
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([data], made)))
    with tvm.transform.PassContext(opt_level=3):
        optimized, _ = relay.optimize(module, TARGET)
    assert 'kernel_layout="HWOI"' in str(optimized)


def test_dense_layers_of_one_tensor_are_joined() -> None:
    data = relay.var("data", shape=(64, 64), dtype="float16")
    parts = [relay.nn.dense(data, constant(64, 64)) + constant(64) for _ in range(3)]
    called = kernels(relay.Function([data], relay.Tuple(parts)))
    assert sum("dense" in name for name in called) == 1


@pytest.mark.parametrize("wide", [False, True])
def test_attention_of_half_precision_is_one_kernel(wide: bool) -> None:
    """Also with the casts that mixed precision puts around the softmax."""
    query, key, value = (relay.var(name, shape=(4, 64, 64), dtype="float16") for name in "qkv")
    scores = relay.nn.batch_matmul(query, key) * relay.const(np.float16(0.125))
    weights = relay.nn.softmax(relay.cast(scores, "float32")) if wide else relay.nn.softmax(scores)
    made = relay.nn.batch_matmul(relay.cast(weights, "float16"), value, transpose_b=False)
    called = kernels(relay.Function([query, key, value], made))
    assert ["attention" in name for name in called] == [True]


def test_layer_norm_is_one_kernel() -> None:
    data = relay.var("data", shape=(32, 64), dtype="float16")
    made = relay.nn.relu(relay.nn.layer_norm(data, constant(64), constant(64)))
    (called,) = kernels(relay.Function([data], made))
    assert "layer_norm" in called


def test_casts_of_products_are_folded() -> None:
    """A sum of half-precision products is in float32 anyway."""
    data = relay.var("data", shape=(64, 64), dtype="float16")
    made = relay.cast(relay.nn.dense(data, constant(64, 64), out_dtype="float32"), "float16")
    (called,) = kernels(relay.Function([data], made))
    assert "cast" not in called
