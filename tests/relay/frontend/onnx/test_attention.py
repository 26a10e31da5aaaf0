"""Attention of the standard gives what torch gives, for batches and lengths that are known or not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, node_model, run

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.support.errors import ModelError

torch = pytest.importorskip("torch")
Q, K, V = floats(2, 4, 3, 8), floats(2, 2, 5, 8, seed=1), floats(2, 2, 5, 6, seed=2)


def expected(mask: Any = None, causal: bool = False, scale: float | None = None) -> Any:
    """What torch makes of the same."""
    given = None if mask is None else torch.tensor(mask)
    return torch.nn.functional.scaled_dot_product_attention(
        torch.tensor(Q),
        torch.tensor(K),
        torch.tensor(V),
        given,
        is_causal=causal,
        scale=scale,
        enable_gqa=True,
    ).numpy()


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("form", ["plain", "scaled", "causal", "booleans", "numbers"])
def test_attention(form: str, unknown: bool) -> None:
    """Heads that share keys; masks of booleans and of numbers."""
    inputs: dict[str, Any] = {"q": Q, "k": K, "v": V}
    attributes: dict[str, Any] = {}
    if form == "scaled":
        attributes["scale"], wanted = 0.3, expected(scale=0.3)
    elif form == "causal":
        attributes["is_causal"], wanted = 1, expected(causal=True)
    elif form == "booleans":
        inputs["m"] = np.random.default_rng(0).random((3, 5)) > 0.3
        wanted = expected(inputs["m"])
    elif form == "numbers":
        inputs["m"] = floats(2, 1, 3, 5, seed=3)
        wanted = expected(inputs["m"])
    else:
        wanted = expected()
    model = node_model("Attention", inputs, opset=23, **attributes)
    if unknown:
        for info in model.graph.input:
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                # Heads and their sizes have to be known, the rest need not be.
                if info.name == "m" or axis in (0, 2):
                    dim.dim_param = f"{info.name}{axis}"
    assert_close(run(model, inputs), [wanted])


def test_three_dimensions() -> None:
    """Heads packed into the last axis are the same as heads apart."""
    packed = {
        name: np.ascontiguousarray(value.transpose(0, 2, 1, 3).reshape(2, value.shape[2], -1))
        for name, value in (("q", Q), ("k", K), ("v", V))
    }
    model = node_model("Attention", packed, opset=23, q_num_heads=4, kv_num_heads=2)
    wanted = expected().transpose(0, 2, 1, 3).reshape(2, 3, -1)
    assert_close(run(model, packed), [wanted])


def test_a_query_that_sees_no_key() -> None:
    """It gives zeros, not numbers that are none."""
    mask = np.array([[True] * 5, [False] * 5, [True, False] * 2 + [True]])
    inputs = {"q": Q, "k": K, "v": V, "m": mask}
    found = run(node_model("Attention", inputs, opset=23), inputs)[0]
    np.testing.assert_array_equal(found[:, :, 1], 0)
    np.testing.assert_allclose(found[:, :, 0], expected()[:, :, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotation_keeps_lengths(interleaved: int) -> None:
    """Pairs are turned, and no more than as many as asked for."""
    angle = floats(3, 2)
    inputs = {
        "x": Q,
        "cos": np.cos(angle)[None].repeat(2, 0),
        "sin": np.sin(angle)[None].repeat(2, 0),
    }
    model = node_model("RotaryEmbedding", inputs, opset=23, interleaved=interleaved, rotary_embedding_dim=4)
    found = run(model, inputs)[0]
    np.testing.assert_array_equal(found[..., 4:], Q[..., 4:])
    np.testing.assert_allclose(
        np.linalg.norm(found[..., :4], axis=-1), np.linalg.norm(Q[..., :4], axis=-1), rtol=1e-5
    )


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotation_is_one_kernel(interleaved: int) -> None:
    """Whatever the pairs are, the rotation reads its input once and writes its result; also of open sizes, and of a
    part of the features."""
    data, positions = floats(2, 3, 5, 12), np.array([[0, 1, 2, 3, 4], [7, 6, 5, 4, 3]])
    angles = np.arange(9)[:, None] / 10.0 ** np.arange(4)
    tables = {"cos": np.cos(angles).astype("float32"), "sin": np.sin(angles).astype("float32")}
    inputs = {"x": data, **tables, "places": positions}
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": 8, "opset": 23}
    first = np.s_[..., 0:8:2] if interleaved else np.s_[..., :4]
    second = np.s_[..., 1:8:2] if interleaved else np.s_[..., 4:8]
    cosines, sines = (tables[name][positions][:, None] for name in ("cos", "sin"))
    expected = data.copy()
    expected[first] = data[first] * cosines - data[second] * sines
    expected[second] = data[first] * sines + data[second] * cosines
    fixed = node_model("RotaryEmbedding", inputs, constants=tables, **attributes)
    module, params = from_onnx(fixed)
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, "llvm", params=params)
    kernels = [node for node in json.loads(built.get_graph_json())["nodes"] if node["op"] != "null"]
    assert sum("multiply" in node["name"] for node in kernels) == 1, [node["name"] for node in kernels]
    (made,) = built.session().run({"x": data, "places": positions}).values()
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
    loose = node_model("RotaryEmbedding", inputs, constants=tables, **attributes)
    for info in loose.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if axis != 3:
                dim.dim_param = f"{info.name}{axis}"
    assert_close(run(loose, {"x": data, "places": positions}, "vm"), [expected])


def test_heads_that_do_not_fit() -> None:
    """Numbers of heads that do not divide are refused."""
    inputs = {"q": floats(1, 2, 6), "k": floats(1, 2, 6), "v": floats(1, 2, 6)}
    for heads, complaint in ((4, "6 features cannot be divided into 4 heads"), (3, "cannot share 2")):
        model = node_model("Attention", inputs, opset=23, q_num_heads=heads, kv_num_heads=2)
        with pytest.raises(ModelError, match=complaint):
            run(model, inputs)


def decoder() -> Any:
    """A step of a decoder as the standard writes it since opset 24: rotation, caches of 12 rows, attention to as many
    rows as each item has."""
    heads, shared, size, capacity = 4, 2, 8, 12
    nodes = [
        helper.make_node("RotaryEmbedding", ["q", "cos", "sin", "place"], ["turned_q"]),
        helper.make_node("RotaryEmbedding", ["k", "cos", "sin", "place"], ["turned_k"]),
        helper.make_node("TensorScatter", ["past_k", "turned_k", "first"], ["present_k"]),
        helper.make_node("TensorScatter", ["past_v", "v", "first"], ["present_v"]),
        helper.make_node("Attention", ["turned_q", "present_k", "present_v", "", "", "", "length"], ["y"]),
    ]
    shapes = {
        "q": [2, heads, 1, size],
        "k": [2, shared, 1, size],
        "v": [2, shared, 1, size],
        "past_k": [2, shared, capacity, size],
        "past_v": [2, shared, capacity, size],
    }
    floating = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    numbers = [helper.make_tensor_value_info("place", 7, [2, 1])]
    numbers += [helper.make_tensor_value_info(name, 7, [2]) for name in ("first", "length")]
    made = [onnx.ValueInfoProto(name=name) for name in ("y", "present_k", "present_v")]
    angles = np.arange(capacity)[:, None] * 10.0 ** -np.arange(size // 2)
    stored = [
        onnx.numpy_helper.from_array(function(angles).astype("float32"), name)
        for name, function in (("cos", np.cos), ("sin", np.sin))
    ]
    graph = helper.make_graph(nodes, "step", [*floating, *numbers], made, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def turned(data: Any, places: Any) -> Any:
    """Halves of features turned by angles of the positions."""
    angle = places.reshape(2, 1, 1, 1) * 10.0 ** -np.arange(4)
    first, second = data[..., :4], data[..., 4:]
    halves = (first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle))
    return np.concatenate(halves, -1)


def test_decoding_with_caches_in_place() -> None:
    """Two sequences of different lengths, token by token: the caches are written where they are, and attention is one
    operator that never has all scores."""
    module, params = from_onnx(decoder())
    in_place = {"past_k": "present_k", "past_v": "present_v"}
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, "llvm", params=params, in_place=in_place)
    assert "contrib_attention" in built.ir_mod.astext(show_meta_data=False)
    executor = built["default"](tvm.cpu())
    for name in in_place:
        executor.set_input(name, np.zeros((2, 2, 12, 8), "float32"))
    keys, values = np.zeros((2, 2, 12, 8)), np.zeros((2, 2, 12, 8))
    for step in range(4):
        places = np.array([step, step + 5])
        q, k, v = (floats(2, heads, 1, 8, seed=3 * step + heads + n) for n, heads in enumerate((4, 2, 2)))
        given = {"q": q, "k": k, "v": v, "place": places[:, None], "first": places, "length": places + 1}
        for name, value in given.items():
            executor.set_input(name, value)
        executor.run()
        keys[range(2), :, places], values[range(2), :, places] = turned(k, places)[:, :, 0], v[:, :, 0]
        np.testing.assert_allclose(executor.get_output(1).numpy(), keys, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(executor.get_output(2).numpy(), values.astype("float32"))
        scores = turned(q, places) @ np.repeat(keys, 2, 1).swapaxes(2, 3) / np.sqrt(8)
        scores[np.broadcast_to(np.arange(12) > places.reshape(2, 1, 1, 1), scores.shape)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        wanted = weights / weights.sum(-1, keepdims=True) @ np.repeat(values, 2, 1)
        np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-5)
