"""A decoder's step for one token: rotary embeddings, attention to a cache of fixed capacity, and a layer of four times
the width, eight times in a row. Its weights are larger than any cache of a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LAYERS, WIDTH, HEADS, CAPACITY = 8, 1024, 16, 2048
SIZE = WIDTH // HEADS
SHAPES = {
    "qkv": (3 * WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (4 * WIDTH, WIDTH),
    "down": (WIDTH, 4 * WIDTH),
}
"""The weights of a layer."""


def caches() -> dict[str, str]:
    """The inputs that are caches, each with the output that is the cache one token later."""
    return {f"{kind}{layer}": f"new_{kind}{layer}" for layer in range(LAYERS) for kind in ("keys", "values")}


def size() -> int:
    """The bytes of weights and caches, all of which a step reads."""
    weights = sum(rows * columns for rows, columns in SHAPES.values())
    return 4 * LAYERS * (weights + 2 * CAPACITY * WIDTH)


def angles() -> tuple[Any, Any]:
    """Cosines and sines of every position."""
    turned = np.arange(CAPACITY)[:, None] / 10000.0 ** (np.arange(SIZE // 2) / (SIZE // 2))
    return np.cos(turned).astype("float32"), np.sin(turned).astype("float32")


def parameters() -> dict[str, Any]:
    """The weights by name."""
    random = np.random.default_rng(0)
    return {
        f"{kind}{layer}": (random.standard_normal(shape) * 0.02).astype("float32")
        for layer in range(LAYERS)
        for kind, shape in SHAPES.items()
    }


def module() -> Any:
    """The step as a Relay module."""
    import tilewright as tvm
    from tilewright import relay

    x: Any = relay.var("x", shape=(1, WIDTH))
    position = relay.var("position", shape=(1,), dtype="int64")
    weights = {name: relay.var(name, shape=value.shape) for name, value in parameters().items()}
    held = {name: relay.var(name, shape=(1, HEADS, CAPACITY, SIZE)) for name in caches()}
    cosines, sines = (relay.take(relay.const(one), position, axis=0) for one in angles())
    places = relay.broadcast_to(relay.reshape(position, (1, 1, 1, 1)), (1, HEADS, 1, SIZE))
    seen = relay.less_equal(relay.const(np.arange(CAPACITY), "int64"), position)
    mask = relay.where(seen, relay.const(0.0), relay.const(float("-inf")))
    made: dict[str, Any] = {}

    def norm(data: Any) -> Any:
        return data * relay.rsqrt(relay.mean(data * data, axis=1, keepdims=True) + relay.const(1e-6))

    def turned(data: Any) -> Any:
        first, second = relay.split(data, 2, axis=3)
        real, imaginary = first * cosines - second * sines, first * sines + second * cosines
        return relay.concatenate([real, imaginary], axis=3)

    def appended(name: str, new: Any) -> Any:
        made[caches()[name]] = relay.scatter(held[name], places, new, 2)
        return relay.reshape(made[caches()[name]], (HEADS, CAPACITY, SIZE))

    for layer in range(LAYERS):
        projected = relay.nn.dense(norm(x), weights[f"qkv{layer}"])
        q, k, v = (relay.reshape(part, (1, HEADS, 1, SIZE)) for part in relay.split(projected, 3, axis=1))
        keys, values = appended(f"keys{layer}", turned(k)), appended(f"values{layer}", v)
        queries = relay.reshape(turned(q) * relay.const(SIZE**-0.5), (HEADS, 1, SIZE))
        scores = relay.nn.batch_matmul(queries, keys) + mask
        read = relay.nn.batch_matmul(relay.nn.softmax(scores), values, transpose_b=False)
        x = x + relay.nn.dense(relay.reshape(read, (1, WIDTH)), weights[f"out{layer}"])
        inner = relay.nn.dense(norm(x), weights[f"up{layer}"])
        x = x + relay.nn.dense(inner * relay.sigmoid(inner), weights[f"down{layer}"])
    names = {"output_tensor_names": ["y", *made]}
    body = relay.Tuple([x, *made.values()])
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body, attrs=names))


def torch_step() -> Callable[[], Any]:
    """The same in PyTorch, with caches that are written in place."""
    import torch

    values = {name: torch.from_numpy(value) for name, value in parameters().items()}
    held = {name: torch.randn(1, HEADS, CAPACITY, SIZE) for name in caches()}
    cosines, sines = (torch.from_numpy(one) for one in angles())
    start, position = torch.randn(1, WIDTH), torch.tensor([CAPACITY - 1])
    linear, attend = torch.nn.functional.linear, torch.nn.functional.scaled_dot_product_attention

    def norm(data: Any) -> Any:
        return data * torch.rsqrt((data * data).mean(1, keepdim=True) + 1e-6)

    def turned(data: Any) -> Any:
        first, second = data.chunk(2, 3)
        cos, sin = cosines[position], sines[position]
        return torch.cat([first * cos - second * sin, first * sin + second * cos], 3)

    def step() -> Any:
        x = start
        mask = torch.arange(CAPACITY) <= position
        for layer in range(LAYERS):
            parts = linear(norm(x), values[f"qkv{layer}"]).chunk(3, 1)
            q, k, v = (one.view(1, HEADS, 1, SIZE) for one in parts)
            held[f"keys{layer}"].index_copy_(2, position, turned(k))
            held[f"values{layer}"].index_copy_(2, position, v)
            read = attend(turned(q), held[f"keys{layer}"], held[f"values{layer}"], attn_mask=mask.view(1, -1))
            x = x + linear(read.reshape(1, WIDTH), values[f"out{layer}"])
            inner = linear(norm(x), values[f"up{layer}"])
            x = x + linear(torch.nn.functional.silu(inner), values[f"down{layer}"])
        return x

    def run() -> Any:
        with torch.inference_mode():
            return step()

    return run
