"""Core ML's models: files that coremltools wrote, layers and operations against NumPy, and errors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.coreml.models import (
    Array,
    array_feature,
    constant,
    image_feature,
    layer,
    network,
    operation,
    program,
    run,
    weights,
)

from tilewright import relay
from tilewright.relay.frontend.coreml.format import FRONTEND
from tilewright.relay.frontend.coreml.registry import LAYERS
from tilewright.relay.frontend.registry import guess_frontend, import_model
from tilewright.support.errors import ModelError, OpNotImplemented

DATA = Path(__file__).parent / "data"
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


X = floats(2, 3, 4)
IMAGE = floats(1, 3, 6, 5)


def close(made: Array, expected: Any) -> None:
    """The same shape and almost the same numbers."""
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


# Files of coremltools


@pytest.mark.parametrize("name", ["network.mlmodel", "program.mlpackage"])
def test_files_of_coremltools(name: str) -> None:
    """A network of convolutions and an LSTM, converted from PyTorch both ways, computes what PyTorch did."""
    expected = np.load(DATA / "expected.npz")
    (made,) = run(DATA / name, {"image": expected["image"]})
    close(made, expected["probabilities"])


@pytest.mark.parametrize("name", ["network.mlmodel", "program.mlpackage"])
def test_files_are_guessed_and_described(name: str) -> None:
    """The format is told by the suffix of a file and by what is in a folder."""
    path = str(DATA / name)
    assert guess_frontend(path).name == "coreml"
    module, _ = import_model(path)
    assert [one.name_hint for one in module["main"].params][0] == "image"
    assert FRONTEND.list_unsupported is not None and FRONTEND.list_unsupported(path) == []
    assert FRONTEND.describe is not None
    described = FRONTEND.describe(path)
    assert [(one.name, one.shape) for one in described.inputs] == [("image", (1, 3, 12, 12))]
    assert described.operators


# Layers


def test_layers_of_tvm_are_converted() -> None:
    """What TVM 0.8 converts: its table by the names of the fields."""
    known = set(LAYERS.names())
    assert known >= {
        "convolution", "batchnorm", "activation", "scale", "pooling", "softmax", "innerProduct", "add", "multiply",
        "flatten", "concat", "padding", "permute", "upsample", "l2normalize", "lrn", "average", "max", "min", "unary",
        "reduce", "reshape", "split",
    }  # fmt: skip


def single(
    kind: str, inputs: dict[str, Array], exact: bool = True, outputs: int = 1, **params: Any
) -> list[Array]:
    """The results of a network of one layer."""
    names = [f"out{place}" for place in range(outputs)]
    features = [array_feature(name, value.shape) for name, value in inputs.items()]
    model = network(features, [layer(kind, list(inputs), names, **params)], names, exact)
    return run(model, inputs)


def test_images_are_scaled_by_the_order_of_their_colours() -> None:
    """Biases go to the channels of the colour space."""
    for colours, order in (("RGB", (3.0, 2.0, 1.0)), ("BGR", (1.0, 2.0, 3.0))):
        scaler = {"channelScale": 0.5, "blueBias": 1.0, "greenBias": 2.0, "redBias": 3.0}
        model = network(
            [image_feature("picture", 6, 5, colours)],
            [layer("unary", ["picture"], ["out"], type="ABS", scale=1.0)],
            ["out"],
            preprocessing=[{"featureName": "picture", "scaler": scaler}],
        )
        (made,) = run(model, {"picture": IMAGE})
        close(made, np.abs(IMAGE * 0.5 + np.float32(order).reshape(3, 1, 1)))


def test_convolution_pools_and_products_in_a_row() -> None:
    """An image network as old converters wrote it: convolution, pooling, flattening, a product, softmax."""
    kernel, weight, bias = floats(4, 3, 1, 1), floats(2, 4 * 3 * 2), floats(2)
    model = network(
        [array_feature("data", (3, 6, 5))],
        [
            layer(
                "convolution",
                ["data"],
                ["a"],
                outputChannels=4,
                kernelChannels=3,
                kernelSize=[1, 1],
                stride=[1, 1],
                valid={},
                weights=weights(kernel),
            ),
            layer("pooling", ["a"], ["b"], type="MAX", kernelSize=[2, 2], stride=[2, 2], valid={}),
            layer("flatten", ["b"], ["c"]),
            layer(
                "innerProduct",
                ["c"],
                ["d"],
                inputChannels=24,
                outputChannels=2,
                hasBias=True,
                weights=weights(weight),
                bias=weights(bias),
            ),
            layer("softmax", ["d"], ["out"]),
        ],
        ["out"],
    )
    (made,) = run(model, {"data": IMAGE})
    convolved = np.einsum("nchw,oc->nohw", IMAGE, kernel[:, :, 0, 0])
    pooled = convolved[:, :, :, :4].reshape(1, 4, 3, 2, 2, 2).max((3, 5))
    scores = pooled.reshape(1, -1) @ weight.T + bias
    close(made, np.exp(scores) / np.exp(scores).sum())


LAYER_CASES: list[tuple[str, dict[str, Array], dict[str, Any], Any]] = [
    ("activation", {"x": X}, {"leakyReLU": {"alpha": 0.25}}, np.where(X > 0, X, X * 0.25)),
    ("activation", {"x": X}, {"sigmoidHard": {"alpha": 0.3, "beta": 0.4}}, (X * 0.3 + 0.4).clip(0, 1)),
    ("activation", {"x": IMAGE}, {"PReLU": {"alpha": weights([1, 2, 3])}}, None),
    ("unary", {"x": np.abs(X)}, {"type": "RSQRT", "epsilon": 0.5, "scale": 2.0}, (np.abs(X) * 2 + 0.5) ** -0.5),
    ("add", {"x": X}, {"alpha": 2.5}, X + 2.5),
    ("multiply", {"x": X, "y": X}, {}, X * X),
    ("average", {"x": X, "y": X * 3}, {}, X * 2),
    ("addBroadcastable", {"x": X, "y": X[:, :1]}, {}, X + X[:, :1]),
    ("greaterThan", {"x": X}, {"alpha": 0.5}, (X > 0.5).astype("float32")),
    ("reduce", {"x": IMAGE}, {"mode": "AVG", "axis": "HW"}, IMAGE.mean((2, 3), keepdims=True)),
    ("reduceL2", {"x": X}, {"axes": [-1], "keepDims": True}, np.sqrt((X * X).sum(-1, keepdims=True))),
    ("reshapeStatic", {"x": X}, {"targetShape": [3, 8]}, X.reshape(3, 8)),
    ("transpose", {"x": X}, {"axes": [2, 0, 1]}, X.transpose(2, 0, 1)),
    ("padding", {"x": IMAGE}, {"reflection": {}, "paddingAmounts": {"borderAmounts": [
        {"startEdgeSize": 1, "endEdgeSize": 2}, {"startEdgeSize": 0, "endEdgeSize": 1}]}},
     np.pad(IMAGE, ((0, 0), (0, 0), (1, 2), (0, 1)), mode="reflect")),
    ("sliceStatic", {"x": X}, {"beginIds": [0, 1, 0], "beginMasks": [True, False, True], "endIds": [0, 2, 0],
     "endMasks": [True, False, True], "strides": [1, 1, 2], "squeezeMasks": [False, True, False]}, X[:, 1, ::2]),
    ("upsample", {"x": IMAGE}, {"scalingFactor": [2, 3], "mode": "NN"}, IMAGE.repeat(2, 2).repeat(3, 3)),
    ("scale", {"x": IMAGE}, {"shapeScale": [3], "scale": weights([1, 2, 3]), "hasBias": True, "shapeBias": [1],
     "bias": weights([5])}, IMAGE * np.float32([1, 2, 3]).reshape(3, 1, 1) + 5),
    ("clip", {"x": X}, {"minVal": -0.5, "maxVal": 0.5}, X.clip(-0.5, 0.5)),
    ("l2normalize", {"x": IMAGE}, {"epsilon": 1e-6}, IMAGE / np.sqrt((IMAGE**2).sum())),
    ("crop", {"x": IMAGE}, {"cropAmounts": {"borderAmounts": [
        {"startEdgeSize": 1, "endEdgeSize": 2}, {"startEdgeSize": 2, "endEdgeSize": 0}]}}, IMAGE[:, :, 1:4, 2:]),
    ("batchedMatmul", {"x": X, "y": X}, {"transposeB": True}, X @ X.transpose(0, 2, 1)),
    ("argMax", {"x": X}, {"axis": 1, "removeDim": True}, X.argmax(1)),
    ("expandDims", {"x": X}, {"axes": [0, -1]}, X[None, ..., None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inputs", "params", "expected"), LAYER_CASES, ids=[one[0] for one in LAYER_CASES]
)
def test_layer(kind: str, inputs: dict[str, Array], params: dict[str, Any], expected: Any) -> None:
    """A layer computes what NumPy does."""
    if expected is None:
        expected = np.where(IMAGE > 0, IMAGE, IMAGE * np.float32([1, 2, 3]).reshape(3, 1, 1))
    close(single(kind, inputs, **params)[0], expected)


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_quantised_weights(bits: int) -> None:
    """Weights of a few bits, by a table and by scales of the output channels."""
    numbers = RANDOM.integers(0, 1 << bits, (2, 4)).astype("uint8")
    flags = (numbers[..., None] >> np.arange(bits)[::-1]) & 1
    raw = np.packbits(flags.reshape(-1).astype("uint8")).tobytes()
    table = floats(1 << bits)
    scale, bias = np.float32([0.5, 2.0]), np.float32([1.0, -1.0])
    ways = [
        ({"lookupTableQuantization": {"floatValue": table}}, table[numbers]),
        ({"linearQuantization": {"scale": scale, "bias": bias}}, numbers * scale[:, None] + bias[:, None]),
    ]
    for how, weight in ways:
        held = {"rawValue": raw, "quantization": {"numberOfBits": bits, **how}}
        (made,) = single("innerProduct", {"x": X}, inputChannels=4, outputChannels=2, weights=held)
        close(made, X @ weight.T.astype("float32"))


# Operations


def test_operations_take_constants_by_name_and_in_place() -> None:
    """A constant of its own, constants in an operation, a list of tensors, two results."""
    model = program(
        {"x": X},
        [
            constant("two", np.float32(2)),
            operation("mul", "doubled", {"x": "x", "y": "two"}),
            operation("concat", "joined", {"values": ["x", "doubled"]}, axis=np.int32(1), interleave=np.bool_(False)),
            operation("split", ["first", "second"], {"x": "joined"}, num_splits=np.int32(2), axis=np.int32(2)),
            operation("slice_by_index", "part", {"x": "second"}, begin=np.int32([0, 1, 0]), end=np.int32([0, 5, 0]),
                      stride=np.int32([1, 2, 1]), begin_mask=np.array([True, False, True]),
                      end_mask=np.array([True, False, True])),
        ],
        ["first", "part"],
    )  # fmt: skip
    first, part = run(model, {"x": X})
    joined = np.concatenate([X, X * 2], 1)
    close(first, joined[:, :, :2])
    close(part, joined[:, 1:5:2, 2:])


def test_padding_and_text_constants() -> None:
    """A text is a constant like any other."""
    weight = floats(2, 3, 3, 3)
    model = program(
        {"x": IMAGE},
        [operation("conv", "y", {"x": "x"}, weight=weight, pad_type="same", strides=np.int32([2, 2]))],
        ["y"],
    )
    assert run(model, {"x": IMAGE})[0].shape == (1, 2, 3, 3)


def test_compressed_weights() -> None:
    """Weights in fewer bits are computed when the model is read."""
    numbers = RANDOM.integers(0, 4, (2, 4)).astype("uint8")
    table = floats(4)
    flags = ((numbers.reshape(-1, 1) >> np.arange(2)) & 1).astype("uint8")
    packed = np.packbits(flags.reshape(-1), bitorder="little")
    mask = numbers > 1
    held = floats(int(mask.sum()))
    sparse = np.zeros((2, 4), "float32")
    sparse[mask] = held
    cases = [
        ("constexpr_affine_dequantize", {"quantized_data": numbers, "zero_point": np.uint8(1),
         "scale": np.float32([0.5, 2]), "axis": np.int32(0)},
         (numbers.astype("float32") - 1) * np.float32([[0.5], [2]])),
        ("constexpr_lut_to_dense", {"indices": packed, "lut": table, "shape": np.int32([2, 4])}, table[numbers]),
        ("constexpr_sparse_to_dense", {"nonzero_data": held, "shape": np.int32([2, 4]),
         "mask": np.packbits(mask.reshape(-1), bitorder="little")}, sparse),
    ]  # fmt: skip
    for kind, constants, expected in cases:
        model = program(
            {"x": X},
            [
                operation(kind, "weight", {}, **constants),
                operation("linear", "y", {"x": "x", "weight": "weight"}),
            ],
            ["y"],
        )
        close(run(model, {"x": X})[0], X @ expected.T)


def test_shapes_that_are_computed() -> None:
    """Reshaping by a shape that is read, cut and joined folds away."""
    model = program(
        {"x": X},
        [
            operation("shape", "sizes", {"x": "x"}),
            operation("gather", "batch", {"x": "sizes"}, indices=np.int32([0]), axis=np.int32(0)),
            constant("rest", np.int32([-1])),
            operation("concat", "wanted", {"values": ["batch", "rest"]}, axis=np.int32(0)),
            operation("reshape", "y", {"x": "x", "shape": "wanted"}),
        ],
        ["y"],
    )
    close(run(model, {"x": X})[0], X.reshape(2, 12))


# Errors


def test_one_error_lists_everything_unsupported() -> None:
    """Layers and operations, with their names."""
    net = network(
        [array_feature("x", (2, 3))],
        [layer("custom", ["x"], ["a"]), layer("loop", ["a"], ["b"])],
        ["b"],
        exact=True,
    )
    with pytest.raises(
        OpNotImplemented, match=r"(?s)2 operators.*custom, 1: custom_layer.*loop, 1: loop_layer"
    ):
        relay.frontend.from_coreml(net)
    made = program({"x": X}, [operation("while_loop", "y", {"x": "x"})], ["y"])
    with pytest.raises(OpNotImplemented, match="while_loop, 1: y"):
        relay.frontend.from_coreml(made)


def test_damaged_models_are_refused(tmp_path: Path) -> None:
    """Each kind of damage is one sentence."""
    good = program({"x": X}, [operation("relu", "y", {"x": "x"})], ["y"])
    cases = [
        (b"not a model", "not a Core ML model"),
        (good[: len(good) // 2], "not a Core ML model"),
        (b"\x08\x01\x12\x00", "neither a neural network nor an ML program"),
        (
            program({"x": X}, [operation("relu", "y", {"x": "z"})], ["y"]),
            "'z' is not computed before it is used",
        ),
        (program({"x": X}, [operation("relu", "y", {})], ["y"]), "node 'y' .relu.: the input 'x' is missing"),
    ]
    for content, message in cases:
        with pytest.raises(ModelError, match=message):
            relay.frontend.from_coreml(content)
    with pytest.raises(ModelError, match="has no input 'nothing'"):
        relay.frontend.from_coreml(good, {"nothing": (1,)})
    package = tmp_path / "model.mlpackage"
    shutil.copytree(DATA / "program.mlpackage", package)
    held = package / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"
    held.write_bytes(held.read_bytes()[:300])
    with pytest.raises(ModelError, match=r"weight\.bin"):
        relay.frontend.from_coreml(package)
    held.unlink()
    with pytest.raises(ModelError, match="is not in the model's folder"):
        relay.frontend.from_coreml(package)
    (package / "Manifest.json").write_text("{}")
    with pytest.raises(ModelError, match="not a package of a Core ML model"):
        relay.frontend.from_coreml(package)


def test_weights_outside_the_folder_are_refused(tmp_path: Path) -> None:
    """A name that leads out of the package is not followed."""
    package = tmp_path / "model.mlpackage"
    shutil.copytree(DATA / "program.mlpackage", package)
    file = package / "Data" / "com.apple.CoreML" / "model.mlmodel"
    inside = b"@model_path/weights/weight.bin"
    file.write_bytes(file.read_bytes().replace(inside, b"@model_path/../../../../secret"))
    with pytest.raises(ModelError, match="outside of the model's folder"):
        relay.frontend.from_coreml(package)
