"""Classes of ``relay.frontend.onnx`` that ONNX's reference does not run, and those with functions of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tvm
from tilewright import relay
from tilewright.ir.expr import Any as Unknown
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend import onnx as frontend
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import OpAttributeInvalid, OpNotImplemented

_GENERATOR = np.random.default_rng(9)


def real(*shape: int) -> np.ndarray:
    return _GENERATOR.uniform(-1, 1, shape).astype("float32")


def value(found: Any) -> Any:
    """What an expression of constants computes."""
    return Interpreter().run(found.astuple() if isinstance(found, TupleWrapper) else found)


def converted(name: str, opset: int, values: list[Any], **attributes: Any) -> Any:
    """What a converter's expression computes for constants."""
    inputs = [None if one is None else relay.const(np.asarray(one)) for one in values]
    return value(getattr(frontend, name).get_converter(opset)(inputs, attributes, {}))


ROW, IMAGE = real(3, 4), real(1, 2, 4, 4)
SQUARES = IMAGE.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 2, 2, 4)


def test_old_operators() -> None:
    """Those of ONNX's first versions."""
    np.testing.assert_allclose(
        converted("ParametricSoftPlus", 1, [ROW], alpha=2.0, beta=0.5),
        2 * np.log(np.exp(0.5 * ROW) + 1),
        rtol=1e-5,
    )
    np.testing.assert_allclose(converted("Scale", 1, [ROW], scale=3.0), 3 * ROW, rtol=1e-6)
    np.testing.assert_allclose(
        converted("ScaledTanh", 1, [ROW], alpha=2.0, beta=3.0), 2 * np.tanh(3 * ROW), rtol=1e-5
    )
    np.testing.assert_allclose(converted("Affine", 1, [ROW], alpha=2.0, beta=1.0), 2 * ROW + 1, rtol=1e-6)
    np.testing.assert_array_equal(
        converted("Upsample", 9, [IMAGE, np.float32([1, 1, 2, 2])]), IMAGE.repeat(2, 2).repeat(2, 3)
    )
    at = np.asarray([[1, 0], [2, 3], [0, 0]])
    wanted = ROW.copy()
    np.put_along_axis(wanted, at[:, :1], 7, 1)
    found = converted("Scatter", 9, [ROW, at[:, :1], np.full((3, 1), 7, "float32")], axis=1)
    np.testing.assert_array_equal(found, wanted)


def test_pools() -> None:
    """Windows that the reference does not run."""
    np.testing.assert_allclose(
        converted("GlobalLpPool", 2, [IMAGE], p=2)[..., 0, 0], np.sqrt((IMAGE**2).sum((2, 3))), rtol=1e-5
    )
    flat = SQUARES.max(-1)
    places = np.asarray([[[[0, 2], [8, 10]], [[16, 18], [24, 26]]]])
    unpooled = converted("MaxUnpool", 11, [flat, places], kernel_shape=[2, 2], strides=[2, 2])
    assert unpooled.shape == IMAGE.shape and unpooled.reshape(-1)[10] == flat[0, 0, 1, 1]
    regions = np.float32([[0, 0, 0, 3, 3]])
    pooled = converted("MaxRoiPool", 1, [IMAGE, regions], pooled_shape=[1, 1])
    np.testing.assert_allclose(pooled[0, :, 0, 0], IMAGE.max((0, 2, 3)))


def test_quantised_operators_of_onnx_runtime() -> None:
    """Scales and zero points around plain operators."""
    a, b = np.arange(4, dtype="uint8"), np.asarray([5, 6, 7, 8], "uint8")
    half, one, zero = np.float32(0.5), np.float32(1), np.uint8(0)
    first, second = [a, half, zero], [b, one, zero]
    np.testing.assert_array_equal(converted("QLinearAdd", 10, [*first, *second, half, zero]), a + 2 * b)
    np.testing.assert_array_equal(converted("QLinearMul", 10, [*first, *second, half, zero]), a * b)
    found = converted("QLinearConcat", 10, [half, zero, *first, *second], axis=0)
    np.testing.assert_array_equal(found, np.concatenate([a, 2 * b]))
    leaky = converted("QLinearLeakyRelu", 10, [a, one, np.uint8(2), one, np.uint8(2)], alpha=0.5)
    np.testing.assert_array_equal(leaky, np.round(np.where(a < 2, (a - 2.0) * 0.5, a - 2.0) + 2))
    sigmoid = converted("QLinearSigmoid", 10, [a, one, zero, np.float32(1 / 256), zero])
    np.testing.assert_allclose(sigmoid, 256 / (1 + np.exp(-a.astype(float))), atol=1)
    image = np.arange(16, dtype="uint8").reshape(1, 1, 4, 4)
    whole = converted("QLinearGlobalAveragePool", 10, [image, one, zero, half, zero])
    np.testing.assert_array_equal(whole.reshape(-1), [15])
    pooled = converted(
        "QLinearAveragePool", 10, [image, one, zero, half, zero], kernel_shape=[2, 2], strides=[2, 2]
    )
    np.testing.assert_array_equal(pooled.reshape(-1), [5, 9, 21, 25])


def test_random_numbers() -> None:
    """Between the limits, in the shape."""
    made = converted("RandomUniform", 1, [], shape=[40], low=2.0, high=3.0, seed=1.0)
    assert made.shape == (40,) and (made >= 2).all() and (made < 3).all() and made.std() > 0.1


def test_operators_of_pytorch() -> None:
    """``ATen`` with the name of an operator."""
    assert converted("ATen", 9, [ROW, np.int64(1)], operator="size") == 4
    np.testing.assert_array_equal(
        converted("ATen", 9, [np.int64(1), np.int64(7), np.int64(2)], operator="arange"), [1, 3, 5]
    )
    assert converted("ATen", 9, [ROW, np.asarray([2, 6])], operator="reshape").shape == (2, 6)
    bags = np.asarray([[0, 2], [1, 1]])
    np.testing.assert_allclose(
        converted("ATen", 9, [ROW, bags], operator="embedding_bag", mode=1), ROW[bags].mean(1), rtol=1e-6
    )
    put = converted("ATen", 9, [ROW, np.asarray([0, 2]), real(2, 4), np.asarray(False)], operator="index_put")
    np.testing.assert_array_equal(put[1], ROW[1])
    with pytest.raises(OpNotImplemented, match="'trace' is not one of"):
        converted("ATen", 9, [ROW], operator="trace")


def test_a_class_of_ones_own() -> None:
    """Methods by opset; the newest that the model's opset allows is used."""

    class Sqrt(frontend.Unary):
        name = "sqrt"

    class Power(frontend.Elemwise):
        name = "power"

    class Window(frontend.Pool):
        name = "max_pool"

    class Twice(frontend.Conv):
        @classmethod
        def _impl_v11(cls, inputs: Any, attr: Any, params: Any) -> Any:
            return cls.get_converter(1)(inputs, attr, params) * relay.const(2.0)

    assert value(Sqrt.get_converter(13)([relay.const(4.0)], {}, {})) == 2
    assert value(Power.get_converter(13)([relay.const(3.0), relay.const(2.0)], {}, {})) == 9
    pooled = Window.get_converter(11)([relay.const(IMAGE)], {"kernel_shape": [2, 2], "strides": [2, 2]}, {})
    np.testing.assert_array_equal(value(pooled), SQUARES.max(-1))
    given = [relay.const(IMAGE), relay.const(real(1, 2, 1, 1))]
    once, twice = (value(Twice.get_converter(opset)(given, {}, {})) for opset in (1, 13))
    np.testing.assert_allclose(twice, 2 * once)
    with pytest.raises(OpNotImplemented, match="opset version 3 of"):
        frontend.OnnxOpConverter.get_converter(3)


def test_parameters_are_known() -> None:
    """A variable whose value is among the parameters serves as a constant: the sizes of Reshape."""
    shape = relay.var("shape", shape=(2,), dtype="int64")
    params = {"shape": tvm.nd.array(np.asarray([4, 3]))}
    found = frontend.Reshape.get_converter(13)([relay.const(ROW), shape], {}, params)
    assert value(found).shape == (4, 3)


def test_calculations() -> None:
    """What classes share with their subclasses."""
    row, image = relay.const(ROW), relay.const(IMAGE)
    assert value(frontend.Unsqueeze.run_calculation(row, [0, 3])).shape == (1, 3, 4, 1)
    np.testing.assert_allclose(
        value(frontend.ReduceMean.run_calculation([row], 1, False)), ROW.mean(1), rtol=1e-5
    )
    assert issubclass(frontend.ReduceMean, frontend.Reduce)
    together = value(frontend.LogSoftmax.run_calculation(row, [0, 1]))
    np.testing.assert_allclose(together, ROW - np.log(np.exp(ROW).sum()), rtol=1e-4, atol=1e-5)
    target = np.asarray([0, 3, 1])
    loss, weights = frontend.NegativeLogLikelihoodLoss.run_calculation(row, relay.const(target), None, 3)
    np.testing.assert_allclose(value(loss), [-ROW[0, 0], 0, -ROW[2, 1]])
    assert value(weights) == 2
    sizes = relay.const(np.asarray([1, 2, 8, 8]))
    larger = frontend.Resize.v11_13_common([image, None], sizes, {"mode": "nearest"}, {})
    np.testing.assert_array_equal(value(larger), IMAGE.repeat(2, 2).repeat(2, 3))
    clipped = frontend.Clip.convert_attributes([row], {"min": 0.0, "max": 0.5}, {})
    np.testing.assert_array_equal(value(clipped), np.clip(ROW, 0, 0.5))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_two_directions(kind: str) -> None:
    """The second reads the steps from the last on: with equal weights, it is the first on the reversed list."""
    gates = 4 if kind == "LSTM" else 3
    steps = [relay.const(real(1, 2)) for _ in range(3)]
    zeros = relay.const(np.zeros((1, 2), "float32"))
    weights = {
        "hidden_state": zeros,
        "w_inp": relay.const(real(2 * gates, 2)),
        "w_hid": relay.const(real(2 * gates, 2)),
    }
    acts = [relay.sigmoid, relay.tanh, relay.tanh] if kind == "LSTM" else [relay.sigmoid, relay.tanh]
    if kind == "LSTM":
        weights["cell_state"] = zeros
    run = frontend.LSTM.bidir_lstm_cell if kind == "LSTM" else frontend.GRU.bidir_gru_cell
    outputs, hidden, *_ = run(steps, [weights, weights], acts * 2)
    backwards, last, *_ = run(steps[::-1], [weights, weights], acts * 2)
    assert value(outputs).shape == (3, 2, 1, 2)
    np.testing.assert_allclose(value(outputs)[::-1, 1], value(backwards)[:, 0], rtol=1e-5)
    np.testing.assert_allclose(value(hidden)[::-1], value(last), rtol=1e-5)


def test_functions_that_converters_share() -> None:
    """Inputs, types, padding, layouts and indices."""
    inputs = frontend.onnx_input([1, 2])
    assert inputs[1] == 2 and inputs[5] is None and inputs[1:4] == [2, None, None] and inputs[:1] == [1]
    np.testing.assert_array_equal(frontend.get_numpy(numpy_helper.from_array(ROW)), ROW)
    assert frontend.get_type(TensorProto.FLOAT16) == "float16"
    name, shape, dtype, names = frontend.get_info(
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    )
    assert (name, dtype, names, shape[1]) == ("x", "float32", ["n", 3], 3) and isinstance(shape[0], Unknown)
    assert frontend.dimension_picker("conv", "_transpose")({"kernel_shape": [3, 3]}) == "conv2d_transpose"
    with pytest.raises(OpAttributeInvalid, match="4 dimensions"):
        frontend.dimension_picker("conv")({"kernel_shape": [1] * 4})
    check, message = frontend.dimension_constraint()
    assert check({"kernel_shape": [3]}) and not check({"kernel_shape": [1] * 4}) and "3d" in message
    assert frontend.revert_caffe2_pad((1, 2, 1, 2)) == (1, 2)
    with pytest.raises(OpAttributeInvalid, match="two or four"):
        frontend.revert_caffe2_pad((1, 2, 3))
    assert frontend.get_pad_pair(6, 3, 2, "SAME_UPPER") == [0, 1]
    assert frontend.get_pad_pair(6, 3, 2, "SAME_LOWER") == [1, 0]
    assert frontend.onnx_default_layout(3, "Conv") == "NCDHW"
    assert frontend.onnx_storage_order2layout(1, 2, "Pool") == "NHWC"
    x = relay.var("x", shape=(1,))
    assert value(frontend.get_scalar(x, {"x": tvm.nd.array(np.float32([2.5]))})) == 2.5
    assert value(frontend.get_scalar(relay.const(np.float32([3])), {}, "int32")) == 3
    scalar = frontend.get_scalar(x, {})
    assert Interpreter().run(relay.Function([x], scalar), [np.float32([4])]).shape == ()
    found = frontend.normalize_gather_indices(relay.const(ROW), relay.const(np.asarray([-1, 1])), 1)
    np.testing.assert_array_equal(value(found), [3, 1])


def test_graph_proto() -> None:
    """The conversion of a graph as an object; frozen parameters are constants."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "sum",
        [info("x", TensorProto.FLOAT, [3, 4])],
        [info("y", TensorProto.FLOAT, [3, 4])],
        [numpy_helper.from_array(ROW, "w")],
    )
    proto = frontend.GraphProto({"x": (3, 4)}, "float32")
    with proto as current:
        assert frontend.GraphProto.current is current
        module, params = proto.from_onnx(graph, 13)
    assert frontend.GraphProto.current is None and list(params) == ["w"]
    function, left = proto.freeze(module["main"], params)
    assert not left and len(function.params) == 1
    np.testing.assert_allclose(Interpreter().run(function, [ROW]), 2 * ROW)
    body = frontend.GraphProto({"x": (3, 4)}, "float32", freeze_params=True).from_onnx(
        graph, 13, get_output_expr=True
    )
    assert body.op.name == "add" and onnx.__version__
