"""The encoder of a transformer: attention and two dense layers, each with a residual connection (Vaswani et al.,
2017)."""

from __future__ import annotations

import math
from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import const, var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import erf
from tilewright.relay.op.transform import reshape, transpose
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError


def gelu(data: Any, dtype: str = "float32") -> Any:
    """x times the share of a normal distribution that is less than x."""
    half, one = const(0.5, dtype), const(1.0, dtype)
    return half * data * (one + erf(data * const(1 / math.sqrt(2), dtype)))


def attention(data: Any, shape: tuple[int, int, int], heads: int, name: str, dtype: str = "float32") -> Any:
    """Self-attention of ``heads`` heads over rows of a matrix of batch times length rows."""
    batch, length, hidden = shape
    size = hidden // heads

    def split(part: str) -> Any:
        projected = layers.dense_add_bias(data, units=hidden, name=f"{name}_{part}")
        apart = transpose(reshape(projected, (batch, length, heads, size)), (0, 2, 1, 3))
        return reshape(apart, (batch * heads, length, size))

    scores = nn.batch_matmul(split("query"), split("key")) * const(1 / math.sqrt(size), dtype)
    weights = nn.softmax(scores, axis=-1)
    mixed = nn.batch_matmul(weights, transpose(split("value"), (0, 2, 1)))
    together = transpose(reshape(mixed, (batch, heads, length, size)), (0, 2, 1, 3))
    flat = reshape(together, (batch * length, hidden))
    return layers.dense_add_bias(flat, units=hidden, name=f"{name}_output")


def _normalised(data: Any, name: str) -> Any:
    return nn.layer_norm(data, var(f"{name}_gamma"), var(f"{name}_beta"), axis=-1, epsilon=1e-12)


def encoder_layer(
    data: Any,
    shape: tuple[int, int, int],
    heads: int,
    intermediate: int,
    name: str,
    dtype: str = "float32",
) -> Any:
    """One layer, with normalisation after each sum."""
    body = _normalised(data + attention(data, shape, heads, f"{name}_attention", dtype), f"{name}_norm1")
    hidden = gelu(layers.dense_add_bias(body, units=intermediate, name=f"{name}_intermediate"), dtype)
    hidden = layers.dense_add_bias(hidden, units=shape[2], name=f"{name}_output")
    return _normalised(body + hidden, f"{name}_norm2")


def get_net(
    batch_size: int = 1,
    seq_length: int = 128,
    hidden_size: int = 768,
    num_layers: int = 12,
    num_heads: int = 12,
    intermediate_size: int = 3072,
    dtype: str = "float32",
) -> Function:
    """The encoder as a function of "data", (batch, length, hidden), and its parameters."""
    if hidden_size % num_heads:
        raise ModelError(f"{num_heads} heads do not divide {hidden_size} numbers")
    shape = (batch_size, seq_length, hidden_size)
    data = var("data", shape=shape, dtype=dtype)
    body = reshape(data, (batch_size * seq_length, hidden_size))
    for number in range(num_layers):
        body = encoder_layer(body, shape, num_heads, intermediate_size, f"layer{number}", dtype)
    result = reshape(body, shape)
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    seq_length: int = 128,
    hidden_size: int = 768,
    num_layers: int = 12,
    num_heads: int = 12,
    intermediate_size: int = 3072,
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The encoder as a module, and values for its parameters."""
    return create_workload(
        get_net(batch_size, seq_length, hidden_size, num_layers, num_heads, intermediate_size, dtype)
    )
