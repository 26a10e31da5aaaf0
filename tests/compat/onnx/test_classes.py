"""Each class of TVM's ``relay.frontend.onnx`` converts its operator: the results are those of ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright import relay
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend import onnx as frontend
from tilewright.relay.interpreter import Interpreter

_GENERATOR = np.random.default_rng(3)


def real(*shape: int) -> np.ndarray:
    return _GENERATOR.uniform(-1, 1, shape).astype("float32")


def whole(*items: int, dtype: str = "int64") -> np.ndarray:
    return np.asarray(items, dtype)


def truth(*items: bool) -> np.ndarray:
    return np.asarray(items)


IMAGE, ROW = real(1, 2, 5, 6), real(3, 4)
MICROSOFT, TRAINING = "com.microsoft", "ai.onnx.preview.training"
BODY = helper.make_graph(
    [helper.make_node("Add", ["x", "x"], ["y"])],
    "twice",
    [],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])],
    [numpy_helper.from_array(ROW, "x")],
)
STEP = helper.make_graph(
    [helper.make_node("Add", ["state", "one"], ["next"]), helper.make_node("Identity", ["go"], ["going"])],
    "step",
    [
        helper.make_tensor_value_info("number", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, [2]),
    ],
    [
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        helper.make_tensor_value_info("next", TensorProto.FLOAT, [2]),
    ],
    [numpy_helper.from_array(np.ones(2, "float32"), "one")],
)

Case = tuple[str, str, int, dict[str, Any], list[Any]]
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}

CASES: list[Case] = [
    ("Absolute", "Abs", 13, {}, [ROW]),
    *((name, name, 13, {}, [ROW, real(4)]) for name in ("Add", "Sub", "Mul", "Div", "Equal")),
    *((name, name, 7, {}, [truth(True, False), truth(True, True)]) for name in ("And", "Or")),
    ("Not", "Not", 1, {}, [truth(True, False)]),
    ("Tile", "Tile", 13, {}, [ROW, whole(2, 1)]),
    ("AveragePool", "AveragePool", 11, WINDOW, [IMAGE]),
    ("MaxPool", "MaxPool", 12, WINDOW, [IMAGE]),
    ("LpPool", "LpPool", 11, {"kernel_shape": [2, 2], "p": 2}, [IMAGE]),
    ("GlobalAveragePool", "GlobalAveragePool", 1, {}, [IMAGE]),
    ("GlobalMaxPool", "GlobalMaxPool", 1, {}, [IMAGE]),
    ("BatchNorm", "BatchNormalization", 15, {}, [IMAGE, real(2), real(2), real(2), np.abs(real(2)) + 1]),
    ("InstanceNorm", "InstanceNormalization", 6, {}, [IMAGE, real(2), real(2)]),
    ("Conv", "Conv", 11, WINDOW, [IMAGE, real(3, 2, 3, 3), real(3)]),
    ("ConvTranspose", "ConvTranspose", 11, {"strides": [2, 2]}, [IMAGE, real(2, 3, 3, 3)]),
    (
        "ConvInteger",
        "ConvInteger",
        10,
        {},
        [
            np.arange(16, dtype="uint8").reshape(1, 1, 4, 4),
            np.ones((1, 1, 2, 2), "uint8"),
            np.uint8(1).reshape(()),
        ],
    ),
    ("Gemm", "Gemm", 13, {"alpha": 0.5, "transB": 1}, [ROW, real(2, 4), real(2)]),
    ("MatMul", "MatMul", 13, {}, [ROW, real(4, 2)]),
    ("Mod", "Mod", 13, {}, [whole(7, -7, 5), whole(3, 3, -3)]),
    ("Pow", "Pow", 13, {}, [np.abs(ROW), np.float32(1.5).reshape(())]),
    ("Reciprocal", "Reciprocal", 13, {}, [ROW + 2]),
    *(
        (name, name, 13, {}, [ROW])
        for name in (
            "Softplus",
            "Softsign",
            "Sign",
            "Erf",
            "Softmax",
            "LogSoftmax",
            "Hardmax",
            "Shape",
            "Flatten",
            "NonZero",
        )
    ),
    ("Elu", "Elu", 6, {"alpha": 0.7}, [ROW]),
    ("Celu", "Celu", 12, {"alpha": 0.7}, [ROW]),
    ("Selu", "Selu", 6, {}, [ROW]),
    ("HardSigmoid", "HardSigmoid", 6, {"alpha": 0.3}, [ROW]),
    ("Shrink", "Shrink", 9, {"lambd": 0.3, "bias": 0.1}, [ROW]),
    ("ThresholdedRelu", "ThresholdedRelu", 10, {"alpha": 0.2}, [ROW]),
    ("Prelu", "PRelu", 9, {}, [IMAGE, real(2, 1, 1)]),
    ("Clip", "Clip", 11, {}, [ROW, np.float32(-0.2).reshape(()), np.float32(0.3).reshape(())]),
    *(
        (name, other, 13, {}, [ROW, real(3, 4), real(4)])
        for name, other in (("Sum", "Sum"), ("Mean", "Mean"), ("Maximum", "Max"), ("Minimum", "Min"))
    ),
    ("Reshape", "Reshape", 13, {}, [ROW, whole(2, -1)]),
    ("DepthToSpace", "DepthToSpace", 13, {"blocksize": 2}, [real(1, 8, 2, 3)]),
    ("SpaceToDepth", "SpaceToDepth", 13, {"blocksize": 2}, [real(1, 2, 4, 6)]),
    ("Concat", "Concat", 13, {"axis": 1}, [ROW, real(3, 2)]),
    ("Pad", "Pad", 13, {}, [ROW, whole(0, 1, 2, 0), np.float32(0.5).reshape(())]),
    ("CumSum", "CumSum", 11, {}, [ROW, np.int64(1).reshape(())]),
    ("Cast", "Cast", 13, {"to": TensorProto.INT32}, [ROW * 5]),
    ("Unsqueeze", "Unsqueeze", 13, {}, [ROW, whole(0, 3)]),
    ("Squeeze", "Squeeze", 13, {}, [real(1, 3, 1), whole(0)]),
    ("Split", "Split", 11, {"axis": 1, "split": [1, 3]}, [ROW]),
    ("Slice", "Slice", 13, {}, [ROW, whole(1), whole(3), whole(1)]),
    ("Gather", "Gather", 13, {"axis": 1}, [ROW, whole(-1, 0)]),
    ("GatherElements", "GatherElements", 13, {"axis": 1}, [ROW, whole(1, 0, 2).reshape(3, 1)]),
    ("GatherND", "GatherND", 13, {}, [ROW, np.asarray([[0, 1], [2, 3]])]),
    ("Compress", "Compress", 11, {"axis": 0}, [ROW, truth(True, False, True)]),
    ("ScatterND", "ScatterND", 13, {}, [ROW, np.asarray([[1], [0]]), real(2, 4)]),
    ("EyeLike", "EyeLike", 9, {"k": 1}, [ROW]),
    ("LRN", "LRN", 13, {"size": 3}, [IMAGE]),
    *(
        (name, name, 13, {"axes": [1], "keepdims": 0}, [np.abs(ROW) + 0.5])
        for name in (
            "ReduceMax",
            "ReduceMin",
            "ReduceMean",
            "ReduceProd",
            "ReduceLogSumExp",
            "ReduceSumSquare",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
        )
    ),
    ("ReduceSum", "ReduceSum", 13, {}, [ROW, whole(0)]),
    *((name, name, 13, {"axis": 1}, [ROW]) for name in ("ArgMax", "ArgMin")),
    ("OneHot", "OneHot", 11, {}, [whole(0, 2), np.int64(3).reshape(()), np.asarray([0, 1], "float32")]),
    (
        "ConstantOfShape",
        "ConstantOfShape",
        9,
        {"value": numpy_helper.from_array(np.asarray([7], "int32"))},
        [whole(2, 3)],
    ),
    ("Constant", "Constant", 13, {"value": numpy_helper.from_array(ROW)}, []),
    ("Where", "Where", 9, {}, [truth(True, False, True, False), ROW, real(4)]),
    ("Expand", "Expand", 13, {}, [real(1, 4), whole(3, 4)]),
    ("RNN", "RNN", 14, {"hidden_size": 3}, [real(2, 1, 4), real(1, 3, 4), real(1, 3, 3)]),
    ("LSTM", "LSTM", 14, {"hidden_size": 3}, [real(2, 1, 4), real(1, 12, 4), real(1, 12, 3)]),
    ("GRU", "GRU", 14, {"hidden_size": 3}, [real(2, 1, 4), real(1, 9, 4), real(1, 9, 3)]),
    ("Resize", "Resize", 13, {"mode": "nearest"}, [IMAGE, None, whole(1, 1, 2, 2).astype("float32")]),
    ("ReverseSequence", "ReverseSequence", 10, {"batch_axis": 0, "time_axis": 1}, [ROW, whole(1, 2, 3)]),
    ("TopK", "TopK", 11, {}, [ROW, whole(2)]),
    ("Range", "Range", 11, {}, [np.int64(1).reshape(()), np.int64(8).reshape(()), np.int64(3).reshape(())]),
    ("IsInf", "IsInf", 10, {}, [np.asarray([1, np.inf, -np.inf], "float32")]),
    (
        "RoiAlign",
        "RoiAlign",
        16,
        {"output_height": 2, "output_width": 2},
        [IMAGE, np.asarray([[0, 0, 3, 3]], "float32"), whole(0)],
    ),
    (
        "NonMaxSuppression",
        "NonMaxSuppression",
        11,
        {},
        [
            np.asarray([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]], "float32"),
            np.asarray([[[0.9, 0.8, 0.7]]], "float32"),
            whole(3),
            np.asarray([0.5], "float32"),
        ],
    ),
    (
        "QuantizeLinear",
        "QuantizeLinear",
        13,
        {},
        [ROW, np.float32(0.01).reshape(()), np.uint8(128).reshape(())],
    ),
    (
        "DequantizeLinear",
        "DequantizeLinear",
        19,
        {},
        [np.arange(5, dtype="uint8"), np.float32(0.5).reshape(()), np.uint8(2).reshape(())],
    ),
    ("DynamicQuantizeLinear", "DynamicQuantizeLinear", 11, {}, [ROW]),
    (
        "QLinearMatMul",
        "QLinearMatMul",
        10,
        {},
        [
            np.arange(6, dtype="uint8").reshape(2, 3),
            np.float32(0.5).reshape(()),
            np.uint8(1).reshape(()),
            np.arange(6, dtype="uint8").reshape(3, 2),
            np.float32(0.25).reshape(()),
            np.uint8(2).reshape(()),
            np.float32(0.5).reshape(()),
            np.uint8(3).reshape(()),
        ],
    ),
    (
        "QLinearConv",
        "QLinearConv",
        10,
        {},
        [
            np.arange(16, dtype="uint8").reshape(1, 1, 4, 4),
            np.float32(0.5).reshape(()),
            np.uint8(1).reshape(()),
            np.arange(4, dtype="uint8").reshape(1, 1, 2, 2),
            np.float32(0.25).reshape(()),
            np.uint8(2).reshape(()),
            np.float32(0.5).reshape(()),
            np.uint8(30).reshape(()),
        ],
    ),
    (
        "BitShift",
        "BitShift",
        11,
        {"direction": "LEFT"},
        [np.asarray([1, 2], "uint8"), np.asarray([3, 1], "uint8")],
    ),
    ("Unique", "Unique", 11, {}, [np.asarray([2, 1, 1, 3], "float32")]),
    ("Einsum", "Einsum", 12, {"equation": "ij,jk->ik"}, [ROW, real(4, 2)]),
    ("NegativeLogLikelihoodLoss", "NegativeLogLikelihoodLoss", 13, {}, [ROW, whole(0, 3, 1)]),
    ("SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss", 13, {}, [ROW, whole(0, 3, 1)]),
    ("If", "If", 13, {"then_branch": BODY, "else_branch": BODY}, [np.asarray(True)]),
    ("Loop", "Loop", 13, {"body": STEP}, [np.int64(3).reshape(()), np.asarray(True), real(2)]),
    (
        "Momentum",
        "Momentum",
        1,
        {"alpha": 0.9, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.01},
        [np.float32(0.1).reshape(()), np.int64(0).reshape(()), real(3), real(3), real(3)],
    ),
    (
        "Adagrad",
        "Adagrad",
        1,
        {"norm_coefficient": 0.01, "epsilon": 1e-5, "decay_factor": 0.1},
        [np.float32(0.1).reshape(()), np.int64(0).reshape(()), real(3), real(3), np.abs(real(3))],
    ),
    (
        "Adam",
        "Adam",
        1,
        {"alpha": 0.9, "beta": 0.99, "norm_coefficient": 0.01, "epsilon": 1e-5},
        [np.float32(0.1).reshape(()), np.int64(0).reshape(()), real(3), real(3), real(3), np.abs(real(3))],
    ),
]
"""A class, its operator, an opset, attributes and inputs."""


def converted(name: str, opset: int, attributes: dict[str, Any], values: list[Any]) -> list[np.ndarray]:
    """What the expression of a converter computes; the first input is a variable, the others are constants."""
    inputs = [None if value is None else relay.const(value) for value in values]
    variables = []
    if values and values[0].dtype.kind == "f":
        variables = [relay.var("x", shape=values[0].shape, dtype=str(values[0].dtype))]
        inputs[0] = variables[0]
    found = getattr(frontend, name).get_converter(opset)(inputs, attributes, {})
    body = found.astuple() if isinstance(found, TupleWrapper) else found
    result = Interpreter().run(relay.Function(variables, body), values[: len(variables)])
    return list(result) if isinstance(result, list | tuple) else [result]


def referenced(
    operator: str, opset: int, attributes: dict[str, Any], values: list[Any], count: int
) -> list[np.ndarray]:
    """What ONNX's reference computes."""
    names = ["" if value is None else f"input{place}" for place, value in enumerate(values)]
    domain = TRAINING if operator in ("Adagrad", "Adam", "Momentum") else ""
    outputs = [f"output{place}" for place in range(count)]
    node = helper.make_node(operator, names, outputs, domain=domain, **attributes)
    given = {name: value for name, value in zip(names, values, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=name) for name in outputs])
    imports = [helper.make_opsetid("", 13 if domain else opset), helper.make_opsetid(TRAINING, 1)]
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=imports)).run(None, given)


@pytest.mark.parametrize(
    ("name", "operator", "opset", "attributes", "values"), CASES, ids=[one[0] for one in CASES]
)
def test_a_class_converts_its_operator(
    name: str, operator: str, opset: int, attributes: dict[str, Any], values: list[Any]
) -> None:
    """As ONNX's own reference computes it."""
    found = converted(name, opset, attributes, values)
    wanted = referenced(operator, opset, attributes, values, len(found))
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
