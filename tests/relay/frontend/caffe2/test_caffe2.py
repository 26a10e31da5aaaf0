"""Caffe2's networks: operators against NumPy, files, and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.common.messages import encoded
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.relay.frontend.caffe2.format import FRONTEND
from tilewright.relay.frontend.caffe2.net import SCHEMA
from tilewright.relay.frontend.caffe2.registry import OPERATORS
from tilewright.relay.frontend.registry import guess_frontend, import_model
from tilewright.support.errors import ModelError, OpNotImplemented

Array = np.ndarray[Any, Any]
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


def argument(name: str, value: Any) -> dict[str, Any]:
    """An argument of an operator."""
    if isinstance(value, str):
        return {"name": name, "s": value.encode()}
    if isinstance(value, (int, bool)):
        return {"name": name, "i": int(value)}
    if isinstance(value, float):
        return {"name": name, "f": value}
    listed = np.asarray(value)
    return {"name": name, "floats" if listed.dtype.kind == "f" else "ints": listed.reshape(-1).tolist()}


def operator(kind: str, inputs: Sequence[str], outputs: Sequence[str], **arguments: Any) -> dict[str, Any]:
    """An operator of a network."""
    listed = [argument(name, value) for name, value in arguments.items()]
    return {"type": kind, "input": list(inputs), "output": list(outputs), "arg": listed}


def network(*operators: dict[str, Any], outputs: Sequence[str] = ()) -> bytes:
    """The content of a file of a network."""
    content = {"name": "net", "op": operators, "external_output": list(outputs)}
    return encoded(SCHEMA, "NetDef", content, packed=False)


def fills(weights: Mapping[str, Array]) -> bytes:
    """The network that fills weights."""
    return network(
        *(
            operator("GivenTensorFill", [], [name], shape=list(one.shape), values=one)
            for name, one in weights.items()
        )
    )


def run(init: Any, predict: Any, inputs: Mapping[str, Array]) -> list[Array]:
    """What the reference interpreter computes for inputs by name."""
    shapes = {name: value.shape for name, value in inputs.items()}
    kinds = {name: str(value.dtype) for name, value in inputs.items()}
    module, params = relay.frontend.from_caffe2(init, predict, shapes, kinds)
    return interpreted(module, params, inputs)


def single(
    kind: str,
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array] | None = None,
    outputs: int = 1,
    **arguments: Any,
) -> list[Array]:
    """The results of a network of one operator."""
    held = weights or {}
    names = [f"out{place}" for place in range(outputs)]
    made = network(operator(kind, [*inputs, *held], names, **arguments), outputs=names)
    return run(fills(held), made, inputs)


def test_every_operator_of_tvm_is_converted() -> None:
    """TVM 0.8's table."""
    tvm = (
        "Add Sum Mul Softmax AveragePool MaxPool Conv ConvTranspose Concat FC SpatialBN ResizeNearest Relu Sigmoid "
        "Dropout NormalizePlanarYUV"
    )
    assert set(tvm.split()) <= set(OPERATORS.names())


CASES: list[tuple[str, dict[str, Array], dict[str, Array], dict[str, Any], Any]] = [
    ("Relu", {"x": X}, {}, {}, np.maximum(X, 0)),
    ("Sum", {"x": X, "y": X, "z": X}, {}, {}, X * 3),
    ("Add", {"x": IMAGE}, {"b": np.float32([1, 2])}, {"broadcast": 1, "axis": 1},
     IMAGE + np.float32([1, 2]).reshape(2, 1, 1)),
    ("Mul", {"x": X}, {"b": np.float32([1, 2, 3, 4])}, {"broadcast": 1}, X * np.float32([1, 2, 3, 4])),
    ("Softmax", {"x": X[0]}, {}, {}, np.exp(X[0]) / np.exp(X[0]).sum(1, keepdims=True)),
    ("AveragePool", {"x": IMAGE}, {}, {"global_pooling": 1}, IMAGE.mean((2, 3), keepdims=True)),
    ("MaxPool", {"x": IMAGE}, {}, {"kernel": 2, "stride": 2},
     IMAGE[:, :, :4].reshape(1, 2, 2, 2, 3, 2).max((3, 5))),
    ("FC", {"x": X}, {"w": np.ones((2, 12), "float32"), "b": np.float32([1, 2])}, {},
     X.reshape(2, 12).sum(1, keepdims=True) + np.float32([1, 2])),
    ("SpatialBN", {"x": IMAGE}, {"s": np.float32([1, 2]), "b": np.float32([0, 1]), "m": np.float32([1, 0]),
     "v": np.float32([4, 1])}, {"epsilon": 0.0, "is_test": 1},
     np.stack([(IMAGE[:, 0] - 1) / 2, IMAGE[:, 1] * 2 + 1], 1)),
    ("ResizeNearest", {"x": IMAGE}, {}, {"height_scale": 2.0, "width_scale": 3.0}, IMAGE.repeat(2, 2).repeat(3, 3)),
    ("NormalizePlanarYUV", {"x": IMAGE}, {"m": np.float32([[1, 2]]), "d": np.float32([[2, 4]])}, {},
     (IMAGE - np.float32([1, 2]).reshape(2, 1, 1)) / np.float32([2, 4]).reshape(2, 1, 1)),
    ("Concat", {"x": X, "y": X}, {}, {"axis": 2}, np.concatenate([X, X], 2)),
    ("Dropout", {"x": X}, {}, {"is_test": 1}, X),
    ("Reshape", {"x": X}, {}, {"shape": [0, -1]}, X.reshape(2, 12)),
    ("Transpose", {"x": X}, {}, {"axes": [1, 0, 2]}, X.transpose(1, 0, 2)),
    ("Slice", {"x": X}, {}, {"starts": [0, 1, 0], "ends": [-1, 3, 2]}, X[:, 1:3, :2]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inputs", "weights", "arguments", "expected"), CASES, ids=[one[0] for one in CASES]
)
def test_operator(
    kind: str, inputs: dict[str, Array], weights: dict[str, Array], arguments: dict[str, Any], expected: Any
) -> None:
    """An operator computes what NumPy does."""
    close(single(kind, inputs, weights, **arguments)[0], expected)


def test_convolution_and_its_transpose() -> None:
    """Padding of each side; a transposed convolution is the convolution's adjoint."""
    weight = floats(3, 2, 2, 2)
    shape = {"kernel": 2, "stride": 2, "pad_t": 1, "pad_l": 0, "pad_b": 0, "pad_r": 0}
    (made,) = single("Conv", {"x": IMAGE}, {"w": weight, "b": np.float32([1, 2, 3])}, **shape)
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (0, 0)))
    blocks = padded.reshape(1, 2, 3, 2, 3, 2)
    expected = np.einsum("ncyhxw,ochw->noyx", blocks, weight)
    close(made, expected + np.float32([1, 2, 3]).reshape(3, 1, 1))
    other = floats(1, 3, 3, 3)
    (back,) = single("ConvTranspose", {"x": other}, {"w": weight}, **shape)
    np.testing.assert_allclose((back * IMAGE).sum(), (expected * other).sum(), rtol=1e-4)


def test_split_has_several_outputs() -> None:
    """Parts of one size."""
    parts = single("Split", {"x": X}, outputs=2, axis=2)
    close(parts[0], X[:, :, :2])
    close(parts[1], X[:, :, 2:])


def test_files_in_a_folder(tmp_path: Path) -> None:
    """The folder that Caffe2's downloader makes, in the encoding or as text."""
    weight = floats(2, 4)
    predict = network(operator("FC", ["data", "w", "b"], ["y"]), outputs=["y"])
    (tmp_path / "predict_net.pb").write_bytes(predict)
    (tmp_path / "init_net.pb").write_bytes(fills({"w": weight, "b": np.zeros(2, "float32")}))
    assert guess_frontend(str(tmp_path)).name == "caffe2"
    for path, name in ((tmp_path, None), (tmp_path / "predict_net.pb", "caffe2")):
        module, params = import_model(str(path), name, {"data": (1, 4)})
        np.testing.assert_array_equal(params["w"].numpy(), weight)
        assert module["main"].checked_type.ret_type.concrete_shape == (1, 2)
    assert FRONTEND.describe is not None
    assert [one.name for one in FRONTEND.describe(str(tmp_path)).inputs] == ["data"]
    with pytest.raises(ModelError, match="fills the weights only"):
        import_model(str(tmp_path / "init_net.pb"), "caffe2")
    text = 'op { input: "data" output: "y" type: "LeakyRelu" arg { name: "alpha" f: 0.5 } }'
    close(run(None, text, {"data": X})[0], np.where(X > 0, X, X * 0.5))


def test_errors_name_the_operator() -> None:
    """One error for everything unsupported; a sentence for each kind of damage."""
    strange = network(operator("Strange", ["x"], ["a"]), operator("Stranger", ["a"], ["b"]))
    with pytest.raises(OpNotImplemented, match=r"(?s)2 operators.*Strange, 1: a.*Stranger, 1: b"):
        relay.frontend.from_caffe2(None, strange)
    relu = network(operator("Relu", ["x"], ["y"]))
    cases: list[tuple[Any, Any, str]] = [
        (None, b"\x0a\xff", "the network is not a network of Caffe2"),
        (None, b"\x0a\x01a", "there are no operators"),
        (None, relu, "the input 'x' is not among the weights"),
        (network(operator("XavierFill", [], ["w"], shape=[2])), relu, "'w' is made by XavierFill"),
        (network(operator("GivenTensorFill", [], ["w"], shape=[2], values=[1.0])), relu, "has 1 values"),
    ]
    for init, predict, message in cases:
        with pytest.raises(ModelError, match=message):
            relay.frontend.from_caffe2(init, predict)
    with pytest.raises(ModelError, match="the order 'NHWC' is not supported"):
        single("MaxPool", {"x": IMAGE}, kernel=2, order="NHWC")
