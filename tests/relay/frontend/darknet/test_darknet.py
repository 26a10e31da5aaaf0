"""Darknet networks: layers against NumPy, detectors' outputs, files that are damaged. No Darknet is needed."""

from __future__ import annotations

import contextlib
import random
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.interpreting import interpreted

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.driver import tvmc
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.support.errors import ModelError

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


IMAGE = floats(1, 4, 6, 6)


def weights_file(*values: Array, version: tuple[int, int] = (0, 2)) -> bytes:
    """A file of weights; since version 0.2 the number of images seen has eight bytes."""
    long = version[0] * 10 + version[1] >= 2 and max(version) < 1000
    head = struct.pack("<iii" + ("q" if long else "i"), *version, 0, 77)
    return head + b"".join(np.ascontiguousarray(one).tobytes() for one in values)


def network(*layers: str, channels: int = 4, size: int = 6) -> str:
    """The text of a configuration; each layer is ``kind option=value …``."""
    lines = ["[net]", "# of a test", f"channels={channels}", f"height = {size}", f"width={size}", ""]
    for layer in layers:
        kind, *options = layer.split()
        lines += [f"[{kind}]", *options, ""]
    return "\n".join(lines)


def run(text: Any, weights: Any, data: Array = IMAGE, **options: Any) -> list[Array]:
    """What the reference interpreter computes."""
    module, params = relay.frontend.from_darknet(text, data.shape, weights=weights, **options)
    return interpreted(module, params, [data])


def layer(text: str, *weights: Array, data: Array = IMAGE) -> Array:
    """What one layer gives."""
    return run(network(text), weights_file(*weights), data)[0]


def close(made: Array, expected: Any) -> None:
    """The same shape and almost the same numbers."""
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def sigmoid(data: Any) -> Any:
    """Probabilities."""
    return 1 / (1 + np.exp(-data))


def convolved(data: Array, weight: Array, stride: int = 1, pad: int = 0) -> Array:
    """A convolution, window by window."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = weight.shape[-1]
    rows, columns = ((extent - size) // stride + 1 for extent in padded.shape[2:])
    made = np.zeros((len(data), len(weight), rows, columns), "float32")
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            window = padded[:, :, top : top + size, left : left + size]
            made[:, :, row, column] = np.einsum("bchw,ochw->bo", window, weight)
    return made


# Layers


def test_a_convolution_with_batch_normalisation() -> None:
    """The file has biases, scales, means, variances, then the kernel; the border is half a window."""
    biases, scales, means, variances = floats(3), floats(3), floats(3), np.abs(floats(3))
    weight = floats(3, 4, 3, 3)
    made = layer(
        "convolutional batch_normalize=1 filters=3 size=3 stride=2 pad=1 activation=leaky",
        biases, scales, means, variances, weight,
    )  # fmt: skip
    plain = convolved(IMAGE, weight, 2, 1)
    wide = [one[:, None, None] for one in (biases, scales, means, np.sqrt(variances) + 1e-6)]
    normal = (plain - wide[2]) / wide[3] * wide[1] + wide[0]
    close(made, np.where(normal > 0, normal, 0.1 * normal))


def test_a_convolution_with_a_bias() -> None:
    """In groups, and with a kernel that is stored the other way round."""
    biases, weight = floats(4), floats(4, 2, 1, 1)
    made = layer("convolutional filters=4 groups=2 activation=linear", biases, weight)
    parts = [convolved(IMAGE[:, 2 * one : 2 * one + 2], weight[2 * one : 2 * one + 2]) for one in (0, 1)]
    close(made, np.concatenate(parts, 1) + biases[:, None, None])
    weight = floats(4, 4, 3, 3)
    made = layer("convolutional filters=4 size=3 flipped=1", biases, weight.reshape(4, 36).T)
    close(made, sigmoid(convolved(IMAGE, weight) + biases[:, None, None]))


@pytest.mark.parametrize("version", [(0, 1), (0, 2), (0, 2000)])
def test_a_connected_layer(version: tuple[int, int]) -> None:
    """Heads of two lengths; very old files have the matrix by inputs."""
    biases, weight, data = floats(5), floats(5, 16), floats(2, 4, 2, 2)
    stored = weight.T if version == (0, 2000) else weight
    content = weights_file(biases, stored, version=version)
    made = run(network("connected output=5 activation=relu"), content, data)[0]
    close(made, np.maximum(data.reshape(2, 16) @ weight.T + biases, 0))


def test_a_connected_layer_with_batch_normalisation() -> None:
    """The statistics come after the matrix."""
    biases, scales, means, variances = floats(3), floats(3), floats(3), np.abs(floats(3))
    weight = floats(3, 144)
    text = "connected output=3 batch_normalize=1 activation=linear"
    made = layer(text, biases, weight, scales, means, variances)
    normal = (IMAGE.reshape(1, 144) @ weight.T - means) / (np.sqrt(variances) + 1e-6)
    close(made, normal * scales + biases)


def test_batch_normalisation_alone() -> None:
    """Has scales, means and variances in the file, and no biases."""
    scales, means, variances = floats(4), floats(4), np.abs(floats(4))
    wide = [one[:, None, None] for one in (scales, means, np.sqrt(variances) + 1e-6)]
    close(layer("batchnorm", scales, means, variances), (IMAGE - wide[1]) / wide[2] * wide[0])


def test_pooling() -> None:
    """With a step of one the size stays: the border is one smaller than the window, and comes after."""
    close(layer("maxpool size=2 stride=2"), IMAGE.reshape(1, 4, 3, 2, 3, 2).max((3, 5)))
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-np.inf)
    windows = [padded[:, :, row : row + 6, column : column + 6] for row in (0, 1) for column in (0, 1)]
    close(layer("maxpool size=2 stride=1"), np.max(windows, axis=0))
    close(layer("avgpool"), IMAGE.mean((2, 3), keepdims=True))


def test_sizes() -> None:
    """Repeated, cut out, and gathered in Darknet's order."""
    close(layer("upsample stride=2 scale=0.5"), IMAGE.repeat(2, 2).repeat(2, 3) / 2)
    close(layer("crop crop_height=4 crop_width=2"), IMAGE[:, :, 1:5, 2:4] * 2 - 1)
    flat, expected = IMAGE.reshape(-1), np.zeros(IMAGE.size, "float32")
    for channel in range(4):
        for row in range(6):
            for column in range(6):
                place = column + 6 * (row + 6 * channel)
                across, down = column * 2 + channel % 2, row * 2 + channel // 2
                expected[place] = flat[across + 12 * down]
    close(layer("reorg stride=2"), expected.reshape(1, 16, 3, 3))


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("linear", lambda x: x),
        ("logistic", sigmoid),
        ("loggy", lambda x: 2 * sigmoid(x) - 1),
        ("relu", lambda x: np.maximum(x, 0)),
        ("elu", lambda x: np.where(x >= 0, x, np.expm1(x))),
        ("selu", lambda x: np.where(x >= 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(x))),
        ("relie", lambda x: np.where(x > 0, x, 0.01 * x)),
        ("ramp", lambda x: x * (x > 0) + 0.1 * x),
        ("leaky", lambda x: np.where(x > 0, x, 0.1 * x)),
        ("tanh", np.tanh),
        ("plse", lambda x: np.select([x < -4, x > 4], [0.01 * (x + 4), 0.01 * (x - 4) + 1], 0.125 * x + 0.5)),
        (
            "stair",
            lambda x: np.where(np.floor(x) % 2 == 0, np.floor(x / 2), x - np.floor(x) + np.floor(x / 2)),
        ),
        ("hardtan", lambda x: np.clip(x, -1, 1)),
        ("lhtan", lambda x: np.select([x < 0, x > 1], [0.001 * x, 0.001 * (x - 1) + 1], x)),
        ("swish", lambda x: x * sigmoid(x)),
        ("mish", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    ],
)
def test_activations(kind: str, function: Any) -> None:
    """As Darknet's sources have them."""
    data = IMAGE * 4
    close(layer(f"activation activation={kind}", data=data), function(data))


def test_softmax() -> None:
    """Of all numbers of an image, of groups of them, at a temperature."""
    grown = np.exp(IMAGE.reshape(1, 144) / 2)
    close(layer("softmax temperature=2"), grown / grown.sum())
    grown = np.exp(IMAGE.reshape(1, 4, 36))
    close(layer("softmax groups=4"), (grown / grown.sum(2, keepdims=True)).reshape(1, 144))


def test_layers_that_read_others() -> None:
    """By number, from the front or from the layer itself; a route may take one group of the channels."""
    text = network(
        "activation activation=relu",
        "activation activation=tanh",
        "route layers=-1,0",
        "route layers=-1 groups=2 group_id=0",
        "shortcut from=-4 activation=linear",
    )
    first = np.maximum(IMAGE, 0)
    close(run(text, weights_file())[0], np.tanh(first) + first)
    close(run(text.replace("group_id=0", "group_id=1"), weights_file())[0], 2 * first)


def test_a_shortcut_of_fewer_channels() -> None:
    """Only the channels that both have are added."""
    biases, weight = floats(6), floats(6, 4, 1, 1)
    text = network("dropout", "convolutional filters=6 activation=linear", "shortcut from=0")
    made = run(text, weights_file(biases, weight))[0]
    expected = convolved(IMAGE, weight) + biases[:, None, None]
    expected[:, :4] += IMAGE
    close(made, expected)


# Detectors


def yolo(data: Array, boxes: int) -> Array:
    """Probabilities of places, objects and classes."""
    apart = data.reshape(1, boxes, -1, *data.shape[2:]).copy()
    apart[:, :, :2] = sigmoid(apart[:, :, :2])
    apart[:, :, 4:] = sigmoid(apart[:, :, 4:])
    return apart.reshape(data.shape)


def test_two_yolo_layers_give_the_outputs_of_tvm() -> None:
    """For each, the last first: the result, the mask, the anchors, the sizes."""
    data = floats(1, 14, 3, 3)
    head = "yolo anchors=1,2,3,4,5,6,7,8 num=4 classes=2"
    made = run(network(f"{head} mask=2,3", "route layers=0", f"{head} mask=0,1"), weights_file(), data)
    assert len(made) == 8
    first = yolo(data, 2)
    close(made[4], first)
    close(made[0], yolo(first, 2))
    for start, mask in ((0, [0, 1]), (4, [2, 3])):
        np.testing.assert_array_equal(made[start + 1], mask)
        np.testing.assert_array_equal(made[start + 2], np.arange(1, 9))
        np.testing.assert_array_equal(made[start + 3], [2, 14, 3, 3, 2, 4])


def test_a_region_layer_gives_the_outputs_of_tvm() -> None:
    """The result, the anchors, the sizes; classes are chosen by softmax."""
    data = floats(1, 16, 3, 3)
    made = run(network("region anchors=1,2,3,4 num=2 classes=3 softmax=1"), weights_file(), data)
    apart = data.reshape(1, 2, 8, 3, 3).copy()
    apart[:, :, :2], apart[:, :, 4] = sigmoid(apart[:, :, :2]), sigmoid(apart[:, :, 4])
    grown = np.exp(apart[:, :, 5:])
    apart[:, :, 5:] = grown / grown.sum(2, keepdims=True)
    close(made[0], apart.reshape(data.shape))
    np.testing.assert_array_equal(made[1], [1, 2, 3, 4])
    np.testing.assert_array_equal(made[2], [2, 16, 3, 3, 3, 4, 0])


# Files

SMALL = network("convolutional filters=2 activation=relu", "maxpool size=2 stride=2")
BIASES, KERNEL = floats(2), floats(2, 4, 1, 1)
FILE = weights_file(BIASES, KERNEL)


def test_the_command_line_reads_a_pair_of_files(tmp_path: Path) -> None:
    """The weights are beside the configuration; the compiled network gives its results."""
    (tmp_path / "net.cfg").write_text(SMALL)
    with pytest.raises(ModelError, match=r"there is no .*net\.weights"):
        relay.frontend.from_darknet(tmp_path / "net.cfg")
    (tmp_path / "net.weights").write_bytes(FILE)
    loaded = tvmc.load(str(tmp_path / "net.cfg"))
    assert [one.name_hint for one in loaded.mod["main"].params] == [
        "data",
        "layer_0_weight",
        "layer_0_biases",
    ]
    built = relay.build(loaded.mod, "llvm", params=loaded.params)
    run_time = graph_executor.GraphModule(built["default"](tvm.cpu()))
    run_time.run(data=IMAGE)
    full = np.maximum(convolved(IMAGE, KERNEL) + BIASES[:, None, None], 0)
    close(run_time.get_output(0).numpy(), full.reshape(1, 2, 3, 2, 3, 2).max((3, 5)))
    with pytest.raises(ModelError, match="holds weights only: name the cfg file"):
        relay.frontend.import_model(str(tmp_path / "net.weights"))
    described = relay.frontend.registry.find_frontend("darknet").describe
    assert described is not None
    found = described(str(tmp_path / "net.cfg"))
    assert found.operators == {"convolutional": 1, "maxpool": 1} and found.inputs[0].shape == (1, 4, 6, 6)


def test_everything_unsupported_is_in_one_error() -> None:
    """Layers, options and activations, with their numbers and lines."""
    text = network("gru output=3", "convolutional xnor=1 activation=gelu", "local", "gru output=4")
    with pytest.raises(UnsupportedOperators) as raised:
        relay.frontend.from_darknet(text, weights=FILE)
    found = {each.operator: each.nodes for each in raised.value.operators}
    assert sorted(found) == ["convolutional with xnor", "gru", "local", "the activation 'gelu'"]
    assert found["gru"] == ["layer_0 (line 7)", "layer_3 (line 16)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[convolutional]\nfilters=2", r"does not begin with \[net\]"),
        ("[net]\nwidth=3", "has no layers"),
        ("[net]\nwidth", "line 2: 'width' is not an option"),
        ("width=3\n[net]", "line 1"),
        (network("convolutional filters=two"), r"'layer_0' \(convolutional\): the option 'filters' is 'two'"),
        (network("convolutional filters=999999999999"), "ends within the biases"),
        (network("convolutional filters=-3"), "impossible shape"),
        (network("convolutional filters=2 size=0"), "impossible shape"),
        (network("convolutional filters=3 groups=0"), "are not 0 groups"),
        (network("maxpool size=0 stride=0"), r"'layer_0' \(maxpool\)"),
        (network("maxpool size=99 padding=0"), r"'layer_0' \(maxpool\)"),
        (network("upsample stride=99999999"), r"layer_0|bytes"),
        (network("route layers=3"), "layer 3 is asked for, and there are 0"),
        (network("shortcut from=-1"), "layer -1 is asked for"),
        (network("softmax temperature=0"), r"'layer_0' \(softmax\)"),
        (network("yolo num=2 classes=2"), "4 channels are not 2 boxes of 7 numbers"),
        (network("yolo num=1 mask=4"), "are not those of 1 boxes"),
        (network("dropout", size=0), "'height' is '0'"),
        ("nowhere.cfg", "there is no Darknet configuration"),
        (object(), "what Darknet's library had loaded"),
    ],
)
def test_impossible_networks_are_refused(text: Any, message: str) -> None:
    """With the layer, and before anything is allocated."""
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_darknet(text, weights=FILE)


def test_weights_that_do_not_fit() -> None:
    """Cut off at any length they are refused; too many are a warning; none are asked for."""
    for size in range(len(FILE)):
        with pytest.raises(ModelError):
            relay.frontend.from_darknet(SMALL, weights=FILE[:size])
    with pytest.warns(UserWarning, match="1 numbers are left"):
        relay.frontend.from_darknet(SMALL, weights=FILE + b"\0\0\0\0")
    with pytest.raises(ModelError, match="the weights are missing"):
        relay.frontend.from_darknet(SMALL)
    with pytest.raises(ModelError, match="it has the version -1"):
        relay.frontend.from_darknet(SMALL, weights=b"\xff" * 40)


def test_random_damage_is_an_error_or_a_network() -> None:
    """Whatever letters or bytes change: a network, or a ``ModelError``."""
    chance = random.Random(3)
    for _ in range(150):
        letters = list(SMALL)
        letters[chance.randrange(len(letters))] = chance.choice("019-=[]#,\nx")
        content = bytearray(FILE)
        content[chance.randrange(len(content))] = chance.randrange(256)
        with contextlib.suppress(ModelError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            relay.frontend.from_darknet("".join(letters), weights=bytes(content))
