"""Formats of models."""

import pytest

from tilewright.driver import tvmc
from tilewright.driver.tvmc import frontends
from tilewright.driver.tvmc.common import TVMCException
from tilewright.support.errors import ModelError


def test_formats_are_known_by_name_and_suffix():
    """The six formats of tvmc; a suffix tells the format in either case."""
    assert frontends.get_frontend_names()[:6] == ["keras", "onnx", "pb", "tflite", "pytorch", "paddle"]
    assert isinstance(frontends.get_frontend_by_name("onnx"), frontends.OnnxFrontend)
    for path, name in [
        ("a/model.ONNX", "onnx"),
        ("m.h5", "keras"),
        ("m.keras", "keras"),
        ("m.pb", "pb"),
        ("m.tflite", "tflite"),
        ("m.pth", "pytorch"),
        ("m.pdmodel", "paddle"),
        ("m.mlmodel", "coreml"),
        ("m.prototxt", "caffe"),
        ("m.caffemodel", "caffe"),
    ]:
        assert frontends.guess_frontend(path).name() == name
    assert {"caffe", "caffe2", "coreml", "darknet", "mxnet"} <= set(frontends.get_frontend_names())
    with pytest.raises(TVMCException, match="no model format 'theano'"):
        frontends.get_frontend_by_name("theano")
    with pytest.raises(TVMCException, match="pass model_format"):
        frontends.guess_frontend("model")


def test_onnx_is_loaded(small_onnx, open_onnx):
    """A model has its module and parameters; shapes can be given."""
    model = tvmc.load(small_onnx)
    assert sorted(model.params) == ["bias", "weight"]
    fixed = tvmc.load(open_onnx, shape_dict={"x": [5, 4]})
    assert fixed.mod["main"].params[0].checked_type.concrete_shape == (5, 4)
    frozen = tvmc.load(small_onnx, model_format="onnx", freeze_params=True)
    assert frozen.params == {}


@pytest.mark.parametrize("suffix", ["keras", "pb", "tflite", "pdmodel", "mlmodel", "prototxt"])
def test_files_that_are_no_models_are_refused(suffix, tmp_path):
    """Whether the framework that wrote the format is installed or not."""
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(b"x")
    with pytest.raises(
        ModelError,
        match=r"not a TFLite model|is not a TensorFlow graph|Keras cannot|pip install|not a PaddlePaddle program"
        r"|not a Core ML model|not a network of Caffe",
    ):
        tvmc.load(str(path))


def test_keras_helpers():
    """What scripts call on Keras directly."""
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    frontend = frontends.KerasFrontend()
    assert frontend.is_sequential_p(model)
    functional = frontend.sequential_to_functional(model)
    assert not frontend.is_sequential_p(functional)
    with pytest.raises(TVMCException, match="not a Sequential"):
        frontend.sequential_to_functional(functional)


def test_a_missing_file():
    """It is named."""
    with pytest.raises(TVMCException, match=r"there is no model nothere.onnx"):
        tvmc.load("nothere.onnx")
