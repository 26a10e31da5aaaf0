"""Keras 3 models, layer by layer, against Keras itself; skipped where it is not installed.

Without TensorFlow Keras runs on PyTorch here, which layer by layer makes no difference.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.frontend.keras.importer import list_unsupported
from tilewright.support.errors import ModelError

if importlib.util.find_spec("tensorflow") is None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
layers = keras.layers

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


def run(module: Any, params: Any, *inputs: Any) -> list[Any]:
    """What the reference interpreter computes."""
    return interpreted(module, params, inputs)


def expected_of(model: Any, *data: Any) -> list[Any]:
    """What Keras gives."""
    made = model(data[0] if len(data) == 1 else list(data), training=False)
    made = made if isinstance(made, (list, tuple)) else [made]
    return [np.asarray(keras.ops.convert_to_numpy(one)) for one in made]


def check(model: Any, *data: Any) -> None:
    """A model gives what Keras gives, in its own layout."""
    found = run(*relay.frontend.from_keras(model, layout="NHWC"), *data)
    for one, other in zip(found, expected_of(model, *data), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def chain(shape: tuple[int, ...], *parts: Any) -> Any:
    """A sequential model with one example."""
    keras.utils.set_random_seed(1)
    return keras.Sequential([layers.Input(shape, batch_size=1), *parts])


IMAGE = (6, 7, 4)
CHAINS: dict[str, Callable[[], Any]] = {
    "dense": lambda: chain((5,), layers.Dense(4, activation="gelu"), layers.Dense(3, activation="softmax")),
    "convolution": lambda: chain(IMAGE, layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")),
    "groups": lambda: chain(IMAGE, layers.Conv2D(6, 3, groups=2, dilation_rate=2)),
    "causal": lambda: chain((8, 3), layers.Conv1D(4, 3, padding="causal")),
    "volume": lambda: chain((4, 5, 5, 2), layers.Conv3D(3, 2), layers.MaxPooling3D(2)),
    "depthwise": lambda: chain(IMAGE, layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)),
    "separable": lambda: chain(IMAGE, layers.SeparableConv2D(5, 3, activation="elu")),
    "transposed": lambda: chain(IMAGE, layers.Conv2DTranspose(3, 3, strides=2, padding="same")),
    "transposed valid": lambda: chain(IMAGE, layers.Conv2DTranspose(3, 2, strides=3)),
    "pooling": lambda: chain(IMAGE, layers.MaxPooling2D(3, 2, "same"), layers.AveragePooling2D(2)),
    "global": lambda: chain(IMAGE, layers.GlobalAveragePooling2D(keepdims=True), layers.GlobalMaxPooling2D()),
    "borders": lambda: chain(
        IMAGE, layers.ZeroPadding2D(((1, 0), (2, 3))), layers.Cropping2D(((1, 1), (0, 2)))
    ),
    "larger": lambda: chain(
        IMAGE, layers.UpSampling2D((2, 3)), layers.UpSampling2D(2, interpolation="bilinear")
    ),
    "norms": lambda: chain(
        IMAGE, layers.BatchNormalization(), layers.LayerNormalization(), layers.ReLU(2.0, 0.1)
    ),
    "activations": lambda: chain((5,), layers.LeakyReLU(), layers.PReLU(), layers.ELU(0.7), layers.Softmax()),
    "shapes": lambda: chain(IMAGE, layers.Permute((3, 1, 2)), layers.Reshape((2, -1)), layers.Flatten()),
    "repeat": lambda: chain((5,), layers.RepeatVector(3), layers.TimeDistributed(layers.Dense(2))),
    "rnn": lambda: chain((4, 3), layers.SimpleRNN(5, return_sequences=True), layers.SimpleRNN(2)),
    "lstm": lambda: chain((4, 3), layers.LSTM(5, return_sequences=True), layers.LSTM(2)),
    "gru": lambda: chain((4, 3), layers.GRU(5, return_sequences=True), layers.GRU(2, reset_after=False)),
    "bidirectional": lambda: chain((4, 3), layers.Bidirectional(layers.LSTM(3, return_sequences=True))),
    "scaling": lambda: chain(IMAGE, layers.Rescaling(0.5, -1), layers.Dropout(0.5)),
}


@pytest.mark.parametrize("name", list(CHAINS))
def test_layers(name: str) -> None:
    """Each family of layers."""
    model = CHAINS[name]()
    check(model, floats(*(1, *model.inputs[0].shape[1:])))


def branching() -> Any:
    """A functional model with merges, operations between layers, and a model inside it."""
    keras.utils.set_random_seed(1)
    image, row = layers.Input(IMAGE, batch_size=1), layers.Input((4,), batch_size=1)
    inner = keras.Sequential([layers.Input(IMAGE), layers.Conv2D(4, 3, padding="same")])
    left, right = inner(image), inner(image * 2.0)
    joined = layers.Concatenate()(
        [left + right, layers.Multiply()([left, right]), layers.Average()([left, right])]
    )
    gated = layers.Dense(12)(row)
    return keras.Model([image, row], [layers.GlobalAveragePooling2D()(joined) * gated, joined[:, ::2, 1]])


def test_a_functional_model() -> None:
    """Shared layers, merges, arithmetic and subscripts; several inputs and outputs."""
    check(branching(), floats(1, *IMAGE), floats(1, 4))


def test_channels_first() -> None:
    """NCHW, the default: images go in and come out that way, and no convolution is left in another layout."""
    model = chain(
        IMAGE, layers.Conv2D(6, 3, padding="same"), layers.BatchNormalization(), layers.MaxPooling2D(2)
    )
    module, params = relay.frontend.from_keras(model)
    assert 'data_layout="NHWC"' not in module.astext()
    data = floats(1, *IMAGE)
    (made,) = run(module, params, data.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(made.transpose(0, 2, 3, 1), expected_of(model, data)[0], rtol=1e-4, atol=1e-5)


def test_shapes_can_be_given() -> None:
    """A batch that is open is 1, or what the caller says."""
    model = keras.Sequential([layers.Input((5,), name="row"), layers.Dense(2)])
    for shape, rows in ((None, 1), ({"row": (3, 5)}, 3)):
        module, _ = relay.frontend.from_keras(model, shape)
        assert module["main"].ret_type.concrete_shape == (rows, 2)
    with pytest.raises(ModelError, match="no input 'column'; it has row"):
        relay.frontend.from_keras(model, {"column": (3, 5)})


class Program(keras.Model):
    """A model that is a program."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(3)

    def call(self, data: Any) -> Any:
        """Twice what the layer gives, or nothing."""
        return keras.ops.relu(self.inner(data)) * 2.0


def test_a_subclass_is_traced() -> None:
    """By TensorFlow where that is Keras' backend; else the error names the model."""
    model, data = Program(), floats(2, 4)
    model(data)
    if keras.backend.backend() != "tensorflow":
        with pytest.raises(ModelError, match="Program"):
            relay.frontend.from_keras(model, {"x": (2, 4)}, layout="NHWC")
        return
    found = run(*relay.frontend.from_keras(model, {"x": (2, 4)}, layout="NHWC"), data)
    np.testing.assert_allclose(found[0], expected_of(model, data)[0], rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="layers are traced by TensorFlow")
def test_traced_images_have_their_channels_first() -> None:
    """Of a model with a layer that TensorFlow traces, the layout is that of any other model."""
    model = keras.Sequential(
        [layers.Input((6, 5, 3), name="image"), layers.Resizing(4, 7), layers.Conv2D(2, 3)]
    )
    data = floats(2, 6, 5, 3)
    module, params = relay.frontend.from_keras(model, {"image": (2, 3, 6, 5)})
    (made,) = run(module, params, data.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(made.transpose(0, 2, 3, 1), expected_of(model, data)[0], rtol=1e-4, atol=1e-5)


def test_what_layers_do_in_training_or_with_masks_is_not_left_out() -> None:
    """A mask, a layer that always trains and an activation of one's own are named, unless TensorFlow traces them."""
    keras.utils.set_random_seed(1)
    row = layers.Input((4,), batch_size=1)
    masked = layers.LSTM(2)(layers.Embedding(5, 3, mask_zero=True)(row))
    trained = layers.BatchNormalization()(
        layers.Dense(2, activation=lambda one: one * 3.0)(row), training=True
    )
    found = {
        one.operator.partition(" at 0x")[0] for one in list_unsupported(keras.Model(row, [masked, trained]))
    }
    assert found >= {
        "Embedding with mask_zero",
        "BatchNormalization in training",
        "the activation '<lambda>'",
    }
    if keras.backend.backend() == "tensorflow":
        check(keras.Model(row, masked), np.asarray([[1, 2, 0, 0]], "float32"))


def test_files(tmp_path: Path) -> None:
    """``.keras`` files are read; others of that name are refused."""
    model = chain((5,), layers.Dense(2))
    model.save(tmp_path / "model.keras")
    loaded = tvmc.load(str(tmp_path / "model.keras"))
    data = floats(1, 5)
    np.testing.assert_allclose(
        run(loaded.mod, loaded.params, data)[0], expected_of(model, data)[0], rtol=1e-5
    )
    (tmp_path / "bad.keras").write_bytes(b"no archive")
    with pytest.raises(ModelError, match="Keras cannot load"):
        tvmc.load(str(tmp_path / "bad.keras"))
    with pytest.raises(ModelError, match="a Keras model is a keras.Model, not a str"):
        relay.frontend.from_keras("model")
    with pytest.raises(ModelError, match="the layout is NCHW or one of"):
        relay.frontend.from_keras(model, layout="CHWN")
