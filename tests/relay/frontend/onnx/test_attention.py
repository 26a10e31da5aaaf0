"""Attention of the standard gives what torch gives, for batches and lengths that are known or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.arrays import floats
from tests.relay.frontend.onnx.models import assert_close, node_model, run

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


def test_heads_that_do_not_fit() -> None:
    """Numbers of heads that do not divide are refused."""
    inputs = {"q": floats(1, 2, 6), "k": floats(1, 2, 6), "v": floats(1, 2, 6)}
    for heads, complaint in ((4, "6 features cannot be divided into 4 heads"), (3, "cannot share 2")):
        model = node_model("Attention", inputs, opset=23, q_num_heads=heads, kv_num_heads=2)
        with pytest.raises(ModelError, match=complaint):
            run(model, inputs)
