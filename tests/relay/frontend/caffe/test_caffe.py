"""Caffe's networks: layers against NumPy, both forms of the files, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.caffe.models import Array, inputs_text, layer_text, run, single, weights_file
from tests.relay.frontend.common.messages import encoded

from tilewright import relay
from tilewright.relay.frontend.caffe.format import FRONTEND
from tilewright.relay.frontend.caffe.messages import SCHEMA
from tilewright.relay.frontend.caffe.registry import LAYERS
from tilewright.relay.frontend.registry import guess_frontend, import_model
from tilewright.support.errors import ModelError, OpNotImplemented

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


X = floats(2, 3, 4)
IMAGE = floats(1, 2, 5, 6)


def close(made: Array, expected: Any) -> None:
    """The same shape and almost the same numbers."""
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_every_layer_of_tvm_is_converted() -> None:
    """TVM 0.8's table, but for Input."""
    tvm = (
        "BatchNorm Concat Convolution Crop Deconvolution Dropout Eltwise Embed Flatten InnerProduct LRN Pooling PReLU "
        "ReLU Reshape Scale Sigmoid Slice Softmax TanH"
    )
    assert set(tvm.split()) <= set(LAYERS.names())


CASES: list[tuple[str, dict[str, Array], str, list[Array], Any]] = [
    ("ReLU", {"x": X}, "relu_param { negative_slope: 0.25 }", [], np.where(X > 0, X, X * 0.25)),
    ("PReLU", {"x": IMAGE}, "", [np.float32([0.5, 2])],
     np.where(IMAGE > 0, IMAGE, IMAGE * np.float32([0.5, 2]).reshape(2, 1, 1))),
    ("TanH", {"x": X}, "", [], np.tanh(X)),
    ("Power", {"x": X}, "power_param { power: 2 scale: 0.5 shift: 1 }", [], (X * 0.5 + 1) ** 2),
    ("Exp", {"x": X}, "exp_param { base: 2 scale: 0.5 shift: 1 }", [], 2 ** (X * 0.5 + 1)),
    ("Dropout", {"x": X}, "", [], X),
    ("Eltwise", {"x": X, "y": X * 2}, "eltwise_param { operation: SUM coeff: 1 coeff: -0.5 }", [], X * 0),
    ("Eltwise", {"x": X, "y": X[::-1]}, "eltwise_param { operation: MAX }", [], np.maximum(X, X[::-1])),
    ("Softmax", {"x": X}, "", [], np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    ("Concat", {"x": X, "y": X}, "concat_param { axis: 2 }", [], np.concatenate([X, X], 2)),
    ("Flatten", {"x": X}, "", [], X.reshape(2, 12)),
    ("Reshape", {"x": X}, "reshape_param { shape { dim: 0 dim: -1 dim: 2 } }", [], X.reshape(2, 6, 2)),
    ("Reshape", {"x": X}, "reshape_param { shape { dim: 2 dim: 2 } axis: 2 }", [], X.reshape(2, 3, 2, 2)),
    ("Permute", {"x": X}, "permute_param { order: 2 order: 0 }", [], X.transpose(2, 0, 1)),
    ("Tile", {"x": X}, "tile_param { axis: 1 tiles: 2 }", [], np.tile(X, (1, 2, 1))),
    ("Crop", {"x": IMAGE, "y": IMAGE[:, :, :3, :2]}, "crop_param { axis: 2 offset: 1 offset: 3 }", [],
     IMAGE[:, :, 1:4, 3:5]),
    ("Reduction", {"x": X}, "reduction_param { operation: SUMSQ axis: 1 coeff: 2 }", [], (X * X).sum((1, 2)) * 2),
    ("ArgMax", {"x": X[0]}, "argmax_param { axis: 1 }", [], X[0].argmax(1)[:, None]),
    ("BatchNorm", {"x": IMAGE}, "batch_norm_param { eps: 0.1 }",
     [np.float32([1, 2]), np.float32([4, 9]), np.float32([2])],
     (IMAGE - np.float32([0.5, 1]).reshape(2, 1, 1)) / np.sqrt(np.float32([2, 4.5]).reshape(2, 1, 1) + 0.1)),
    ("Scale", {"x": IMAGE}, "scale_param { bias_term: true }", [np.float32([2, 3]), np.float32([1, -1])],
     IMAGE * np.float32([2, 3]).reshape(2, 1, 1) + np.float32([1, -1]).reshape(2, 1, 1)),
    ("Pooling", {"x": IMAGE}, "pooling_param { pool: AVE global_pooling: true }", [],
     IMAGE.mean((2, 3), keepdims=True)),
    ("Embed", {"x": np.float32([0, 2])}, "embed_param { num_output: 2 input_dim: 3 bias_term: false }",
     [np.float32([[1, 2], [3, 4], [5, 6]])], [[1, 2], [5, 6]]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inputs", "params", "weights", "expected"), CASES, ids=[one[0] for one in CASES]
)
def test_layer(kind: str, inputs: dict[str, Array], params: str, weights: list[Array], expected: Any) -> None:
    """A layer computes what NumPy does."""
    close(single(kind, inputs, params, weights)[0], expected)


@pytest.mark.parametrize("kind", ["MAX", "AVE"])
@pytest.mark.parametrize("pad", [0, 1])
def test_pooling_rounds_up(kind: str, pad: int) -> None:
    """The last window reaches beyond the image; the border counts for means, what is beyond it does not."""
    (made,) = single(
        "Pooling", {"x": IMAGE}, f"pooling_param {{ pool: {kind} kernel_size: 2 stride: 2 pad: {pad} }}"
    )
    rows, columns = 5, 6
    counts = [-(-(size + 2 * pad - 2) // 2) + 1 for size in (rows, columns)]
    counts = [
        count - 1 if pad and (count - 1) * 2 >= size + pad else count
        for count, size in zip(counts, (rows, columns), strict=True)
    ]
    expected = np.zeros((1, 2, *counts), "float32")
    for row in range(counts[0]):
        for column in range(counts[1]):
            top, left = row * 2 - pad, column * 2 - pad
            bottom, right = min(top + 2, rows + pad), min(left + 2, columns + pad)
            seen = IMAGE[:, :, max(top, 0) : min(bottom, rows), max(left, 0) : min(right, columns)]
            area = (bottom - top) * (right - left)
            expected[:, :, row, column] = seen.max((2, 3)) if kind == "MAX" else seen.sum((2, 3)) / area
    close(made, expected)


def test_convolution_with_groups_and_its_transpose() -> None:
    """Rows and columns by their own names; a transposed convolution is the convolution's adjoint."""
    weight = floats(4, 1, 3, 2)
    params = (
        "convolution_param { num_output: 4 group: 2 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0 "
        "bias_term: %s }"
    )
    (made,) = single("Convolution", {"x": IMAGE}, params % "true", [weight, np.float32([1, 2, 3, 4])])
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 1), (0, 0)))
    expected = np.zeros((1, 4, 3, 5), "float32")
    for output in range(4):
        for row in range(3):
            for column in range(2):
                seen = padded[:, output // 2, row : row + 5 : 2, column : column + 5]
                expected[:, output] += seen * weight[output, 0, row, column]
    close(made, expected + np.float32([1, 2, 3, 4]).reshape(4, 1, 1))
    other = floats(1, 4, 3, 5)
    back = single(
        "Deconvolution", {"x": other}, (params % "false").replace("num_output: 4", "num_output: 2"), [weight]
    )
    plain = single("Convolution", {"x": IMAGE}, params % "false", [weight])[0]
    np.testing.assert_allclose((back[0] * IMAGE).sum(), (plain * other).sum(), rtol=1e-4)


def test_slices_and_in_place_layers() -> None:
    """Parts at given places; a layer whose top is its bottom replaces it."""
    parts = single("Slice", {"x": X}, "slice_param { axis: 2 slice_point: 1 }", tops=2)
    close(parts[0], X[:, :, :1])
    close(parts[1], X[:, :, 1:])
    text = inputs_text({"x": X}) + layer_text("ReLU", ["x"], ["x"]) + layer_text("Sigmoid", ["x"], ["y"])
    close(run(None, text, {"x": X})[0], 1 / (1 + np.exp(-np.maximum(X, 0))))


OLD = """
name: "old"
input: "data"
input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 6
layers { name: "train" type: DATA top: "label" include { phase: TRAIN } }
layers { name: "fc" type: INNER_PRODUCT bottom: "data" top: "fc" inner_product_param { num_output: 3 } }
layers { name: "loss" type: SOFTMAX_LOSS bottom: "fc" bottom: "label" top: "loss" }
"""


def test_the_old_form_of_layers() -> None:
    """Kinds that are names of an enumeration, inputs at the head, losses that give their predictions."""
    weight, bias = floats(3, 60), floats(3)
    blobs = [
        {"num": 1, "channels": 1, "height": 3, "width": 60, "data": weight.reshape(-1)},
        {"num": 1, "channels": 1, "height": 1, "width": 3, "data": bias},
    ]
    held = encoded(
        SCHEMA, "NetParameter", {"layers": [{"name": "fc", "type": "INNER_PRODUCT", "blobs": blobs}]}
    )
    (made,) = run(held, OLD, {"data": IMAGE})
    scores = IMAGE.reshape(1, -1) @ weight.T + bias
    close(made, np.exp(scores) / np.exp(scores).sum())


def test_files_beside_each_other(tmp_path: Path) -> None:
    """The text of layers finds its weights; both say of themselves what they are."""
    text = inputs_text({"x": X}) + layer_text(
        "InnerProduct", ["x"], ["y"], "inner_product_param { num_output: 2 axis: 2 bias_term: false }", "fc"
    )
    weight = floats(2, 4)
    (tmp_path / "net.prototxt").write_text(text)
    (tmp_path / "net.caffemodel").write_bytes(weights_file({"fc": [weight]}))
    for name in ("net.prototxt", "net.caffemodel"):
        path = str(tmp_path / name)
        assert guess_frontend(path).name == "caffe"
        module, params = import_model(path)
        np.testing.assert_array_equal(params["fc_weight"].numpy(), weight)
        assert module["main"].checked_type.ret_type.concrete_shape == (2, 3, 2)
        assert FRONTEND.describe is not None
        described = FRONTEND.describe(path)
        assert described.operators == {"InnerProduct": 1}
        assert [(one.name, one.shape) for one in described.inputs] == [("x", (2, 3, 4))]


def test_errors_name_the_layer() -> None:
    """One error for everything unsupported; a sentence for each kind of damage."""
    text = inputs_text({"x": X})
    strange = layer_text("Strange", ["x"], ["a"], name="one") + layer_text(
        "Stranger", ["a"], ["b"], name="two"
    )
    with pytest.raises(OpNotImplemented, match=r"(?s)2 operators.*Strange, 1: one.*Stranger, 1: two"):
        relay.frontend.from_caffe(None, text + strange)
    product = layer_text("InnerProduct", ["x"], ["y"], "inner_product_param { num_output: 2 }", "fc")
    cases: list[tuple[Any, Any, str]] = [
        (None, "layer {", "the file of layers is not a network of Caffe: line 1"),
        (b"\x01\x02\x03", text + product, "the file of weights is not a network of Caffe"),
        (None, 'name: "empty {}"', "there are no layers"),
        (None, text + product, r"node 'fc' .InnerProduct.: the layer has 0 weights and needs 1"),
        (weights_file({"fc": [floats(2, 5)]}), text + product, r"does not fit \(2, 12\)"),
        (None, text + layer_text("ReLU", ["z"], ["y"], name="act"), "'act'.*'z' is not computed"),
        (
            None,
            'layer { name: "d" type: "Data" top: "x" }' + layer_text("ReLU", ["x"], ["y"]),
            "shape of the input 'x'",
        ),
    ]
    for weights, layers, message in cases:
        with pytest.raises(ModelError, match=message):
            relay.frontend.from_caffe(weights, layers)
    with pytest.raises(ModelError, match="has no input 'nothing'"):
        relay.frontend.from_caffe(None, text + product, {"nothing": (1,)})
