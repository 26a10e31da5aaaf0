"""TFLite models: float and quantised operators, control flow, what is refused. No TensorFlow is needed."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.tflite.models import Graph, Number, Op, T, held, model, run

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.relay.frontend.tflite import OperatorConverter
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)
DATA = Path(__file__).parent / "data"


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


def single(
    operator: str,
    inputs: dict[str, Any],
    shape: tuple[int, ...],
    *constants: T,
    dtype: str = "float32",
    **options: Any,
) -> list[np.ndarray[Any, Any]]:
    """What an operator gives for arrays and constants."""
    tensors = [T(name, value.shape, str(value.dtype)) for name, value in inputs.items()]
    tensors += [*constants, T("y", shape, dtype)]
    names = [*inputs, *(one.name for one in constants)]
    graph = Graph(tensors, [Op(operator, list(names), ["y"], options)], list(inputs), ["y"])
    return run(model(graph), *inputs.values())


# Floating point


def test_an_activation_is_part_of_an_operator() -> None:
    """Sums are cut off at zero, at six, or at one."""
    left, right = floats(2, 3) * 5, floats(2, 3) * 5
    for activation, low, high in (("RELU", 0, np.inf), ("RELU6", 0, 6), ("RELU_N1_TO_1", -1, 1)):
        (made,) = single("ADD", {"a": left, "b": right}, (2, 3), activation=activation)
        np.testing.assert_allclose(made, np.clip(left + right, low, high), rtol=1e-6)


def test_a_convolution_stays_channels_last() -> None:
    """Padding SAME puts what is odd after; the program has the layout of the model."""
    data, weight, bias = floats(1, 6, 5, 2), floats(3, 3, 3, 2), floats(3)
    tensors = [T("x", data.shape), held("w", weight), held("b", bias), T("y", (1, 3, 3, 3))]
    op = Op("CONV_2D", ["x", "w", "b"], ["y"], {"padding": "SAME", "stride_w": 2, "stride_h": 2})
    content = model(Graph(tensors, [op], ["x"], ["y"]))
    padded = np.pad(data, ((0, 0), (0, 1), (1, 1), (0, 0)))
    expected = np.zeros((1, 3, 3, 3), "float32")
    for row in range(3):
        for column in range(3):
            window = padded[0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
            expected[0, row, column] = np.tensordot(weight, window, ([1, 2, 3], [0, 1, 2])) + bias
    np.testing.assert_allclose(run(content, data)[0], expected, rtol=1e-4, atol=1e-5)
    module, params = relay.frontend.from_tflite(content)
    assert 'data_layout="NHWC"' in module.astext() and "transpose" not in module.astext()
    assert {name.split("_")[0] for name in params} == {"w", "b"}


def test_a_depthwise_convolution_multiplies_channels() -> None:
    """Output channel ``c * multiplier + m`` reads channel ``c``."""
    data, weight = floats(1, 3, 3, 2), floats(1, 1, 1, 4)
    (made,) = single(
        "DEPTHWISE_CONV_2D",
        {"x": data},
        (1, 3, 3, 4),
        held("w", weight),
        stride_w=1,
        stride_h=1,
        multiplier=2,
    )
    np.testing.assert_allclose(made, np.repeat(data, 2, axis=3) * weight[0, 0, 0], rtol=1e-5)


def test_a_transposed_convolution_of_volumes_has_a_bias() -> None:
    """The sizes of the result come first, then the kernel, the data, and a number for each channel."""
    data, weight, bias = floats(1, 1, 2, 2, 1), floats(1, 2, 2, 3, 1), floats(3)
    tensors = [held("s", np.asarray([1, 1, 4, 4, 3], "int32")), held("w", weight), T("x", data.shape)]
    steps = {"padding": "VALID", "stride_d": 1, "stride_w": 2, "stride_h": 2}
    op = Op("CONV_3D_TRANSPOSE", ["s", "w", "x", "b"], ["y"], steps)
    tensors += [held("b", bias), T("y", (1, 1, 4, 4, 3))]
    expected = np.einsum("ij,klc->ikjlc", data[0, 0, ..., 0], weight[0, ..., 0]).reshape(1, 1, 4, 4, 3) + bias
    (made,) = run(model(Graph(tensors, [op], ["x"], ["y"])), data)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SUM", [[5, 7], [0, 0], [5, 6]]),
        ("PROD", [[4, 10], [1, 1], [5, 6]]),
        ("MAX", [[4, 5], [np.finfo("float32").min] * 2, [5, 6]]),
        ("MIN", [[1, 2], [np.finfo("float32").max] * 2, [5, 6]]),
    ],
)
def test_unsorted_segments(name: str, expected: Any) -> None:
    """Rows joined by segment; one without rows has the number with which joining begins."""
    data, segments = np.asarray([[1, 2], [5, 6], [4, 5]], "float32"), np.asarray([0, 2, 0], "int32")
    tensors = {"x": data, "s": segments}
    (made,) = single(f"UNSORTED_SEGMENT_{name}", tensors, (3, 2), held("n", np.asarray(3, "int32")))
    np.testing.assert_array_equal(made, np.asarray(expected, "float32"))


def test_boundaries_are_an_option() -> None:
    """An element equal to a boundary is above it."""
    data = np.asarray([-2.0, -1.0, 0.3, 7.0], "float32")
    (made,) = single("BUCKETIZE", {"x": data}, (4,), dtype="int32", boundaries=[-1.0, 0.5, 1.0])
    np.testing.assert_array_equal(made, [0, 1, 1, 3])


def test_the_bits_of_numbers() -> None:
    """The type is that of the output: there is no option."""
    data = floats(2, 3)
    (made,) = single("BITCAST", {"x": data}, (2, 3), dtype="int32")
    np.testing.assert_array_equal(made, data.view("int32"))


def test_a_fully_connected_layer_keeps_leading_axes() -> None:
    """Rows of more than two dimensions stay apart where the option says so."""
    data, weight = floats(2, 3, 4), floats(5, 4)
    (made,) = single("FULLY_CONNECTED", {"x": data}, (2, 3, 5), held("w", weight), keep_num_dims=True)
    np.testing.assert_allclose(made, data @ weight.T, rtol=1e-5)


def test_subscripts() -> None:
    """``x[1, ::-1, None]``, by masks."""
    data = floats(2, 3, 4)
    bounds = [held(name, np.asarray(one, "int32")) for name, one in (("b", [1, 0, 0]), ("e", [2, 0, 0]))]
    steps = held("s", np.asarray([1, -1, 1], "int32"))
    (made,) = single(
        "STRIDED_SLICE",
        {"x": data},
        (3, 1, 4),
        *bounds,
        steps,
        begin_mask=0b110,
        end_mask=0b110,
        new_axis_mask=0b100,
        shrink_axis_mask=0b001,
    )
    np.testing.assert_array_equal(made, data[1, ::-1, None])


def test_shapes_fold_with_an_open_batch() -> None:
    """shape → slice → pack → reshape leaves nothing to compute; the batch is the one that is given."""
    tensors = [
        T("x", (1, 4, 3), more={7: np.asarray([-1, 4, 3], "int32")}),
        T("shape", (3,), "int32"),
        held("zero", np.asarray([0], "int32")),
        held("one", np.asarray([1], "int32")),
        T("batch", (), "int32"),
        held("rest", np.int32(12)),
        T("wanted", (2,), "int32"),
        T("y", (1, 12)),
    ]
    operators = [
        Op("SHAPE", ["x"], ["shape"], {"out_type": "int32"}),
        Op("STRIDED_SLICE", ["shape", "zero", "one", "one"], ["batch"], {"shrink_axis_mask": 1}),
        Op("PACK", ["batch", "rest"], ["wanted"], {"values_count": 2, "axis": 0}),
        Op("RESHAPE", ["x", "wanted"], ["y"]),
    ]
    content = model(Graph(tensors, operators, ["x"], ["y"]))
    data = floats(5, 4, 3)
    np.testing.assert_array_equal(run(content, data, shape_dict={"x": (5, 4, 3)})[0], data.reshape(5, 12))
    module, _ = relay.frontend.from_tflite(content)
    assert [one.checked_type.concrete_shape for one in module["main"].params] == [(1, 4, 3)]
    module, _ = relay.frontend.from_tflite(content, {"x": (None, 4, 3)})
    text = module.astext()
    assert "reshape" in text and "shape_of" not in text


# Quantised


def steps_of(numbers: Any, scale: Any, zero: int, dtype: str) -> np.ndarray[Any, Any]:
    """Numbers as integers."""
    limits = np.iinfo(dtype)
    return np.clip(np.round(numbers / np.asarray(scale)) + zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL"])
def test_quantised_arithmetic(operator: str, dtype: str) -> None:
    """As on numbers, with three scales and zero points, rounded once; products within one step."""
    function = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}[operator]
    scales, zeros = (0.05, 0.03, 0.09), (3, 7, 5)
    left, right = (
        RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 8)).astype(dtype) for _ in range(2)
    )
    tensors = [
        T(name, (2, 8), dtype, scale=scale, zero=zero)
        for name, scale, zero in zip("aby", scales, zeros, strict=True)
    ]
    content = model(
        Graph(tensors, [Op(operator, ["a", "b"], ["y"], {"activation": "RELU6"})], ["a", "b"], ["y"])
    )
    numbers = function(
        scales[0] * (left.astype(float) - zeros[0]), scales[1] * (right.astype(float) - zeros[1])
    )
    expected = steps_of(np.clip(numbers, 0, 6), scales[2], zeros[2], dtype)
    made = run(content, left, right)[0].astype(int)
    # One rounding: only ties may differ.
    assert np.abs(made - expected.astype(int)).max() <= (1 if operator == "MUL" else 0)


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_quantised_convolution(per_channel: bool) -> None:
    """One scale for all of the kernel or one for each output; the border stands for zero."""
    scale, zero = 0.1, -3
    weights = np.asarray([0.02, 0.05, 0.01], "float32") if per_channel else np.float32(0.02)
    data = RANDOM.integers(-128, 127, (1, 4, 4, 2)).astype("int8")
    kernel = RANDOM.integers(-127, 127, (3, 3, 3, 2)).astype("int8")
    bias = RANDOM.integers(-500, 500, 3).astype("int32")
    tensors = [
        T("x", data.shape, "int8", scale=scale, zero=zero),
        held("w", kernel, scale=weights),
        held("b", bias, scale=scale * weights),
        T("y", (1, 4, 4, 3), "int8", scale=0.4, zero=10),
    ]
    op = Op(
        "CONV_2D",
        ["x", "w", "b"],
        ["y"],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1, "activation": "RELU"},
    )
    content = model(Graph(tensors, [op], ["x"], ["y"]))
    padded = np.pad(data.astype(int) - zero, ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = np.zeros((1, 4, 4, 3))
    for row in range(4):
        for column in range(4):
            window = padded[0, row : row + 3, column : column + 3]
            sums[0, row, column] = np.tensordot(kernel.astype(int), window, ([1, 2, 3], [0, 1, 2])) + bias
    expected = steps_of(np.maximum(sums * scale * weights, 0), 0.4, 10, "int8")
    made = run(content, data)[0]
    assert made.dtype == np.int8
    assert np.abs(made.astype(int) - expected.astype(int)).max() <= 1
    assert (made == expected).mean() > 0.95 and len(np.unique(expected)) > 10
    assert "qnn.conv2d" in relay.frontend.from_tflite(content)[0].astext()


def test_a_layer_of_words_has_a_bias_of_64_bits() -> None:
    """Activations of int16 with weights of int8: the bias has the product of both scales."""
    data, weight = np.asarray([[1000, -2000, 300]], "int16"), np.asarray([[10, 20, -30], [5, 0, 7]], "int8")
    bias, scales = np.asarray([40000, -90000], "int64"), np.asarray([0.01, 0.02], "float32")
    tensors = [
        T("x", data.shape, "int16", scale=0.001),
        held("w", weight, scale=scales),
        held("b", bias, scale=0.001 * scales),
        T("y", (1, 2), "int16", scale=0.0005),
    ]
    content = model(Graph(tensors, [Op("FULLY_CONNECTED", ["x", "w", "b"], ["y"])], ["x"], ["y"]))
    sums = data.astype(int) @ weight.T.astype(int) + bias
    np.testing.assert_array_equal(run(content, data)[0], np.round(sums * 0.001 * scales / 0.0005))


def test_halves_of_byte_layers_round_to_even() -> None:
    """As in XNNPACK, which TensorFlow's interpreter uses: the sums are scaled in float32 and rounded to even."""
    data = np.asarray([[-5, -3, -1, 1, 3, 5, 7]], "int8").reshape(7, 1)
    tensors = [
        T("x", (7, 1), "int8", scale=0.5),
        held("w", np.ones((1, 1), "int8"), scale=1.0),
        T("y", (7, 1), "int8", scale=1.0),
    ]
    content = model(Graph(tensors, [Op("FULLY_CONNECTED", ["x", "w"], ["y"])], ["x"], ["y"]))
    assert run(content, data)[0].ravel().tolist() == [-2, -2, 0, 0, 2, 2, 4]


def test_weights_may_be_quantised_alone() -> None:
    """Hybrid models: the weight is a parameter of the numbers that it stands for."""
    data, scales = floats(2, 4), np.asarray([0.1, 0.2, 0.3], "float32")
    weight = RANDOM.integers(-127, 127, (3, 4)).astype("int8")
    (made,) = single("FULLY_CONNECTED", {"x": data}, (2, 3), held("w", weight, scale=scales))
    np.testing.assert_allclose(made, data @ (weight * scales[:, None]).T, rtol=1e-5)


def test_other_operators_go_through_numbers() -> None:
    """A sigmoid has no integer form: it is dequantised and quantised."""
    data = np.arange(-100, 100, 20, dtype="int8")
    tensors = [
        T("x", data.shape, "int8", scale=0.05, zero=0),
        T("y", data.shape, "int8", scale=1 / 256, zero=-128),
    ]
    content = model(Graph(tensors, [Op("LOGISTIC", ["x"], ["y"])], ["x"], ["y"]))
    np.testing.assert_array_equal(
        run(content, data)[0], steps_of(1 / (1 + np.exp(-data * 0.05)), 1 / 256, -128, "int8")
    )


def test_joining_brings_tensors_to_one_scale() -> None:
    """Each part keeps the numbers that it stands for."""
    left, right = np.asarray([[10, 20]], "uint8"), np.asarray([[10, 20]], "uint8")
    tensors = [
        T("a", (1, 2), "uint8", scale=1.0, zero=0),
        T("b", (1, 2), "uint8", scale=0.5, zero=4),
        T("y", (1, 4), "uint8", scale=1.0, zero=1),
    ]
    content = model(Graph(tensors, [Op("CONCATENATION", ["a", "b"], ["y"], {"axis": 1})], ["a", "b"], ["y"]))
    np.testing.assert_array_equal(run(content, left, right)[0], [[11, 21, 4, 9]])


def test_half_precision_weights() -> None:
    """A float16 constant that the model dequantises is a float32 parameter."""
    weight = floats(3).astype("float16")
    tensors = [T("x", (3,)), held("h", weight), T("w", (3,)), T("y", (3,))]
    operators = [Op("DEQUANTIZE", ["h"], ["w"]), Op("ADD", ["x", "w"], ["y"])]
    data = floats(3)
    made = run(model(Graph(tensors, operators, ["x"], ["y"])), data)[0]
    np.testing.assert_allclose(made, data + weight.astype("float32"), rtol=1e-6)


def test_a_sparse_weight_is_read_whole() -> None:
    """Compressed rows: values that are not there are zero."""
    dense = np.asarray([[1, 0, 0, 2], [0, 0, 3, 0]], "float32")
    levels = [
        {0: Number("int8", 0), 1: Number("int32", 2)},
        {
            0: Number("int8", 1),
            2: Number("uint8", 1),
            3: {0: np.asarray([0, 2, 3], "int32")},
            4: Number("uint8", 1),
            5: {0: np.asarray([0, 3, 2], "int32")},
        },
    ]
    weight = T(
        "w",
        (2, 4),
        value=np.asarray([1, 2, 3], "float32"),
        more={6: {0: np.asarray([0, 1], "int32"), 2: levels}},
    )
    data = floats(1, 4)
    tensors = [T("x", (1, 4)), weight, T("d", (2, 4)), T("y", (1, 2))]
    operators = [Op("DENSIFY", ["w"], ["d"]), Op("FULLY_CONNECTED", ["x", "d"], ["y"])]
    made = run(model(Graph(tensors, operators, ["x"], ["y"])), data)[0]
    np.testing.assert_allclose(made, data @ dense.T, rtol=1e-6)


def flexible(options: dict[str, float]) -> bytes:
    """A map of numbers as a flexible buffer, every entry of which has eight bytes."""
    names = sorted(options)
    content = bytearray()
    places = []
    for name in names:
        places.append(len(content))
        content += name.encode() + b"\0"
    content += b"\0" * (-len(content) % 8)
    content += struct.pack("<q", len(names))
    keys = len(content)
    for place in places:
        content += struct.pack("<q", len(content) - place)
    # The values: where the keys are and how wide, how many there are, the numbers, and their types.
    content += struct.pack("<q", len(content) - keys) + struct.pack("<qq", 8, len(names))
    values = len(content)
    for name in names:
        value = options[name]
        content += struct.pack("<d" if isinstance(value, float) else "<q", value)
    content += bytes((3 if isinstance(options[name], float) else 1) << 2 | 3 for name in names)
    root = len(content)
    content += struct.pack("<B", root - values) + bytes([9 << 2 | 3, 1])
    return bytes(content)


def test_detection_postprocess() -> None:
    """Boxes are decoded from anchors; of two that overlap the better one is left, whatever their classes."""
    options = {
        "max_detections": 3,
        "num_classes": 2,
        "nms_iou_threshold": 0.5,
        "nms_score_threshold": 0.1,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    anchors = np.asarray([[0.5, 0.5, 0.2, 0.2], [0.5, 0.5, 0.2, 0.21], [0.2, 0.2, 0.1, 0.1]], "float32")
    codes = np.zeros((1, 3, 4), "float32")
    scores = np.asarray([[[0, 0.2, 0.9], [0, 0.8, 0.1], [0, 0.6, 0.3]]], "float32")
    tensors = [
        T("boxes", (1, 3, 4)),
        T("scores", (1, 3, 3)),
        held("anchors", anchors),
        T("b", (1, 3, 4)),
        T("c", (1, 3)),
        T("s", (1, 3)),
        T("n", (1,)),
    ]
    op = Op(
        "CUSTOM:TFLite_Detection_PostProcess",
        ["boxes", "scores", "anchors"],
        ["b", "c", "s", "n"],
        custom=flexible(options),
    )
    content = model(Graph(tensors, [op], ["boxes", "scores"], ["b", "c", "s", "n"]))
    boxes, classes, likely, count = run(content, codes, scores)
    assert count == 2
    np.testing.assert_allclose(boxes[0, :2], [[0.4, 0.4, 0.6, 0.6], [0.15, 0.15, 0.25, 0.25]], rtol=1e-5)
    np.testing.assert_allclose(classes[0, :2], [1, 0])
    np.testing.assert_allclose(likely[0], [0.9, 0.6, 0], rtol=1e-6)

    class Called(OperatorConverter):
        def convert_detection_postprocess(self, op: Any) -> Any:
            return super().convert_detection_postprocess(op)  # type: ignore[misc]

    assert all(
        map(np.array_equal, run(content, codes, scores, op_converter=Called), [boxes, classes, likely, count])
    )


# Control flow


def test_a_loop_over_another_graph() -> None:
    """``while i < 3: i, x = i + 1, x * 2``."""

    def counting(*operators: Op, outputs: list[str]) -> Graph:
        tensors = [
            T("i", (), "int32"),
            T("x", (2,)),
            held("one", np.int32(1)),
            held("two", np.float32(2)),
            held("three", np.int32(3)),
            T("next", (), "int32"),
            T("double", (2,)),
            T("goes_on", (), "bool"),
        ]
        return Graph(tensors, list(operators), ["i", "x"], outputs)

    main = counting(
        Op("WHILE", ["i", "x"], ["next", "double"], {"cond_subgraph": 1, "body_subgraph": 2}),
        outputs=["next", "double"],
    )
    test = counting(Op("LESS", ["i", "three"], ["goes_on"]), outputs=["goes_on"])
    body = counting(
        Op("ADD", ["i", "one"], ["next"]), Op("MUL", ["x", "two"], ["double"]), outputs=["next", "double"]
    )
    data = floats(2)
    count, made = run(model(main, test, body), np.int32(0), data)
    assert count == 3
    np.testing.assert_allclose(made, data * 8, rtol=1e-6)


# What users see


def test_everything_unsupported_is_in_one_error() -> None:
    """With the tensors that the operators write."""
    tensors = [T("x", (2,)), T("a", (2,)), T("b", (2,)), T("c", (2,))]
    operators = [Op("SVDF", ["x"], ["a"]), Op("CUSTOM:Mine", ["a"], ["b"]), Op("SVDF", ["b"], ["c"])]
    with pytest.raises(UnsupportedOperators, match=r"2 operators .*3 nodes") as error:
        relay.frontend.from_tflite(model(Graph(tensors, operators, ["x"], ["c"])))
    assert "SVDF, 2: a, c" in str(error.value) and "CUSTOM:Mine, 1: b" in str(error.value)


SMALL = model(Graph([T("x", (2,)), T("y", (2,))], [Op("RELU", ["x"], ["y"])], ["x"], ["y"]))


@pytest.mark.parametrize("length", range(0, len(SMALL), 7))
def test_truncated_files_are_refused(length: int) -> None:
    """A file that ends early is an error that says so."""
    with pytest.raises(ModelError, match="TFLite model"):
        relay.frontend.from_tflite(SMALL[:length])


def test_damaged_files_are_refused() -> None:
    """No byte that is wrong leads to anything but an error of ours, or to another model."""
    for place in range(0, len(SMALL), 3):
        content = bytearray(SMALL)
        content[place] ^= 0xA5
        with contextlib.suppress(tvm.TVMError):
            relay.frontend.from_tflite(bytes(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "only 0 bytes"),
        (b"random bytes that are no model", "bytes 4 to 8"),
        (model(Graph([T("x", (2,))], [], ["x"], ["x"]), version=2), "version 2 of the schema"),
        (3, "not a int"),
    ],
)
def test_other_things_are_refused(content: Any, message: str) -> None:
    """With what was wrong."""
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_tflite(content)


def test_an_input_that_there_is_not() -> None:
    """Is named, with those that there are."""
    with pytest.raises(ModelError, match="no input 'z'; it has x"):
        relay.frontend.from_tflite(SMALL, {"z": (2,)})


def test_a_converter_of_ones_own() -> None:
    """A subclass of ``OperatorConverter`` replaces the conversion of an operator, or gives a custom one its own."""

    class Mine(OperatorConverter):
        def __init__(self, model: Any, subgraph: Any, exp_tab: Any) -> None:
            super().__init__(model, subgraph, exp_tab)
            self.convert_map["CUSTOM:Twice"] = self.twice

        def twice(self, op: Any) -> Any:
            (tensor,) = self.get_input_tensors(op)
            assert self.get_tensor_type_str(tensor.tensor.Type()) == "float32"
            return relay.multiply(self.get_expr(tensor.tensor_idx), self.exp_tab.new_const(2.0))

    content = model(Graph([T("x", (2,)), T("y", (2,))], [Op("CUSTOM:Twice", ["x"], ["y"])], ["x"], ["y"]))
    data = floats(2)
    np.testing.assert_array_equal(run(content, data, op_converter=Mine)[0], 2 * data)


def test_the_command_line_reads_a_file(tmp_path: Path) -> None:
    """The format is told by the suffix, and by the content where there is none."""
    for name in ("model.tflite", "model"):
        (tmp_path / name).write_bytes(SMALL)
        loaded = tvmc.load(str(tmp_path / name))
        assert [one.name_hint for one in loaded.mod["main"].params] == ["x"]
    described = relay.frontend.registry.find_frontend("tflite").describe
    assert described is not None
    found = described(str(tmp_path / "model"))
    assert found.operators == {"RELU": 1} and found.inputs[0].shape == (2,)


# Files that TensorFlow wrote


@pytest.mark.parametrize("name", ["float", "int8"])
def test_files_of_tensorflow(name: str) -> None:
    """A small network (convolution, depthwise, pooling, dense) gives what TensorFlow's interpreter gave."""
    stored = np.load(DATA / "expected.npz")
    given, expected = stored[f"{name}_input"], stored[f"{name}_output"]
    made = run((DATA / f"{name}.tflite").read_bytes(), given)[0]
    assert made.dtype == expected.dtype
    if name == "int8":
        assert np.abs(made.astype(int) - expected.astype(int)).max() <= 1 and np.ptp(expected) > 50
    else:
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
