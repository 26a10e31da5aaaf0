"""CUTLASS's products are taken out of a graph; its kernels say what to use instead."""

from __future__ import annotations

import math

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.compat.not_there import NotInThisVersion
from tilewright.contrib.cutlass import tune_cutlass_kernels  # type: ignore[import-not-found]
from tilewright.relay.op.contrib.cutlass import partition_for_cutlass  # type: ignore[import-not-found]


def layer(dtype: str = "float16", out_dtype: str = "float16") -> relay.Expr:
    """A dense layer with a bias."""
    data, weight = (
        relay.var("data", shape=(4, 8), dtype=dtype),
        relay.var("weight", shape=(6, 8), dtype=dtype),
    )
    dense = relay.nn.dense(data, weight, out_dtype=out_dtype)
    return relay.nn.bias_add(dense, relay.var("bias", shape=(6,), dtype=out_dtype))


def gelu(data: relay.Expr) -> relay.Expr:
    """As models write it where the error function is computed in float32."""
    scaled = relay.cast(data * relay.const(math.sqrt(0.5), "float16"), "float32")
    half = relay.const(0.5, "float16")
    return (relay.cast(relay.erf(scaled), "float16") * half + half) * data


def composites(body: relay.Expr) -> list[str]:
    """The names of the patterns that are found."""
    text = str(partition_for_cutlass(tvm.IRModule.from_expr(body)))
    return [part.partition('"')[0] for part in text.split('Composite="')[1:]]


def test_the_longest_pattern_is_taken() -> None:
    """A product with its bias and its activation is one function."""
    assert composites(layer()) == ["cutlass.dense_bias"]
    assert composites(layer(out_dtype="float32")) == ["cutlass.dense_bias"]
    assert composites(relay.nn.relu(layer())) == ["cutlass.dense_bias_relu"]
    assert composites(gelu(layer())) == ["cutlass.dense_bias_gelu_fp16"]
    left, right = (
        relay.var("x", shape=(2, 4, 8), dtype="float16"),
        relay.var("y", shape=(2, 6, 8), dtype="float16"),
    )
    assert composites(relay.nn.batch_matmul(left, right)) == ["cutlass.batch_matmul"]


def test_other_types_stay() -> None:
    """Products of float32 are left to the compiler."""
    assert composites(layer("float32", "float32")) == []


def test_kernels_are_not_there() -> None:
    """Choosing a template is an error that names the way without it."""
    with pytest.raises(NotInThisVersion, match="compiles products for tensor cores"):
        tune_cutlass_kernels(tvm.IRModule(), 80)
