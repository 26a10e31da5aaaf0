"""Attention as Microsoft's optimiser writes it gives what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError

B, S, N, D = 2, 3, 2, 4
H = N * D


def floats(*shape: int, seed: int = 0) -> Any:
    """Random numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def same(operator: str, inputs: dict[str, Any], outputs: int = 1, **attributes: Any) -> None:
    """ONNX Runtime and Tilewright agree, with all dimensions known and with none of a sequence."""
    model = node_model(operator, inputs, outputs, domain="com.microsoft", **attributes)
    given = {name: value for name, value in inputs.items() if value is not None}
    assert_close(run(model, given), reference_runtime.outputs(model, given))


ATTENTION: list[tuple[str, dict[str, Any], int, dict[str, Any]]] = [
    ("plain", {}, 1, {}),
    ("causal", {}, 1, {"unidirectional": 1}),
    ("mask of keys", {"mask": np.array([[1, 1, 0], [1, 1, 1]], "int32")}, 1, {}),
    ("mask of pairs", {"mask": np.tril(np.ones((B, S, S), "int32"))}, 1, {}),
    ("ends", {"mask": np.array([2, 3], "int32")}, 1, {}),
    ("past", {"past": floats(2, B, N, 2, D, seed=5)}, 2, {"unidirectional": 1}),
    ("bias and scale", {"bias2": floats(1, N, S, S, seed=6)}, 1, {"scale": 0.3}),
]


@pytest.mark.parametrize(
    ("extra", "outputs", "attributes"), [case[1:] for case in ATTENTION], ids=[case[0] for case in ATTENTION]
)
def test_attention(extra: dict[str, Any], outputs: int, attributes: dict[str, Any]) -> None:
    """Attention with its projection."""
    inputs = {
        "data": floats(B, S, H),
        "weights": floats(H, 3 * H, seed=1),
        "bias": floats(3 * H, seed=2),
        "mask": extra.get("mask"),
        "past": extra.get("past"),
        "bias2": extra.get("bias2"),
    }
    while inputs and list(inputs.values())[-1] is None:
        inputs.popitem()
    same("Attention", inputs, outputs, num_heads=N, **attributes)


def test_multi_head_attention_with_everything() -> None:
    """Biases of the projection, a mask of keys, a bias of the scores, and a cache."""
    inputs = {
        "query": floats(B, S, H),
        "key": floats(B, S, H, seed=1),
        "value": floats(B, S, H, seed=2),
        "bias": floats(3 * H, seed=3),
        "mask": np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], "int32"),
        "scores": floats(B, N, S, S + 2, seed=4),
        "past_key": floats(B, N, 2, D, seed=5),
        "past_value": floats(B, N, 2, D, seed=6),
    }
    same("MultiHeadAttention", inputs, 3, num_heads=N)


def test_multi_head_attention_across() -> None:
    """Keys and values of another length, already split into heads."""
    inputs = {
        "query": floats(B, S, H),
        "key": floats(B, N, 5, D, seed=1),
        "value": floats(B, N, 5, D, seed=2),
    }
    same("MultiHeadAttention", inputs, num_heads=N)


def test_multi_head_attention_packed() -> None:
    """Queries, keys and values packed into one tensor are the same as apart."""
    packed = floats(B, S, N, 3, D)
    apart = [np.ascontiguousarray(packed[:, :, :, part].reshape(B, S, H)) for part in range(3)]
    together = node_model("MultiHeadAttention", {"q": packed}, domain="com.microsoft", num_heads=N)
    names = dict(zip("qkv", apart, strict=True))
    separate = node_model("MultiHeadAttention", names, domain="com.microsoft", num_heads=N)
    assert_close(run(together, {"q": packed}), run(separate, names))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    "positions", [np.array([[0, 1, 2], [3, 4, 5]], "int64"), np.array([2], "int64")], ids=["given", "offset"]
)
def test_rotary_embedding(interleaved: int, positions: Any) -> None:
    """Positions given, or counted from an offset; pairs are halves or neighbours."""
    angle = floats(8, D // 2)
    inputs = {"data": floats(B, S, H), "ids": positions, "cos": np.cos(angle), "sin": np.sin(angle)}
    same("RotaryEmbedding", inputs, interleaved=interleaved)


def grouped(past: int, new: int, total: int, **others: Any) -> dict[str, Any]:
    """Inputs of GroupQueryAttention: four heads of queries over two of keys, of size 16."""
    return {
        "query": floats(B, new, 64),
        "key": floats(B, new, 32, seed=1),
        "value": floats(B, new, 32, seed=2),
        "past_key": floats(B, 2, past, 16, seed=3),
        "past_value": floats(B, 2, past, 16, seed=4),
        "ends": np.full(B, total - 1, "int32"),
        "total": np.array(total, "int32"),
        **others,
    }


GROUPED: list[tuple[str, tuple[int, int, int], dict[str, Any]]] = [
    ("prompt", (0, 5, 5), {}),
    ("token", (4, 1, 5), {}),
    ("softcap and scale", (4, 1, 5), {"softcap": 0.7, "scale": 0.2}),
    ("window", (6, 1, 7), {"local_window_size": 3}),
]


@pytest.mark.parametrize(
    ("sizes", "attributes"), [case[1:] for case in GROUPED], ids=[case[0] for case in GROUPED]
)
@pytest.mark.parametrize("rotary", [0, 1])
def test_group_query_attention(sizes: tuple[int, int, int], attributes: dict[str, Any], rotary: int) -> None:
    """A prompt, and a token after a cache; with and without rotation inside."""
    inputs = grouped(*sizes)
    if rotary:
        angle = floats(16, 8)
        inputs |= {"cos": np.cos(angle), "sin": np.sin(angle)}
    same("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=2, do_rotary=rotary, **attributes)


def test_group_query_attention_fills_a_cache_of_fixed_length() -> None:
    """A cache longer than what it holds keeps its length: the new keys go where each item ends."""
    inputs = grouped(8, 1, 5, ends=np.array([4, 2], "int32"))
    model = node_model("GroupQueryAttention", inputs, 3, domain="com.microsoft", num_heads=4, kv_num_heads=2)
    _, keys, _ = run(model, inputs)
    assert keys.shape == (B, 2, 8, 16)
    new = inputs["key"].reshape(B, 2, 16)
    np.testing.assert_array_equal(keys[0, :, 4], new[0])
    np.testing.assert_array_equal(keys[1, :, 2], new[1])
    np.testing.assert_array_equal(keys[0, :, :4], inputs["past_key"][0, :, :4])


def test_group_query_attention_writes_its_cache_in_place() -> None:
    """Where the longest length is known and the cache has room for it, the new keys are written where the cache is, and
    the result is that of a cache that is as long as what it holds."""
    inputs = grouped(8, 1, 6)
    total = {"total": inputs["total"]}
    sizes = {"domain": "com.microsoft", "num_heads": 4, "kv_num_heads": 2}
    model = node_model("GroupQueryAttention", inputs, 3, constants=total, **sizes)
    module, params = from_onnx(model)
    in_place = {"past_key": "out1", "past_value": "out2"}
    executor = relay.build(module, "llvm", params=params, in_place=in_place)["default"](tvm.cpu())
    for name, value in inputs.items():
        if name != "total":
            executor.set_input(name, value)
    executor.run()
    short = {**inputs, **{name: inputs[name][:, :, :5] for name in in_place}}
    expected, keys, values = run(node_model("GroupQueryAttention", short, 3, **sizes), short)
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
    for name, cache in zip(in_place, (keys, values), strict=True):
        held = executor.get_input(name).numpy()
        np.testing.assert_array_equal(held[:, :, :6], cache)
        np.testing.assert_array_equal(held[:, :, 6:], inputs[name][:, :, 6:])


def test_what_is_not_supported_is_said() -> None:
    """A sink of heads is refused by name."""
    inputs = grouped(4, 1, 5) | {"cos": None, "sin": None, "ids": None, "bias": None, "sink": floats(4)}
    model = node_model("GroupQueryAttention", inputs, domain="com.microsoft", num_heads=4, kv_num_heads=2)
    with pytest.raises(ModelError, match="a sink"):
        run(model, inputs)
