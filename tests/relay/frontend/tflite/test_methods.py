"""The methods of ``OperatorConverter``: each converts its operator, and a subclass can call them or replace them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.tflite.models import Number, flatbuffer

from tilewright import relay
from tilewright.relay.expr import TupleWrapper
from tilewright.relay.frontend import tflite
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.relay.frontend.tflite import OperatorConverter
from tilewright.relay.frontend.tflite.converter import ConstantTable, TensorWrapper
from tilewright.relay.frontend.tflite.model import Model, Operator, Quantization, Subgraph, Tensor
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError

_GENERATOR = np.random.default_rng(11)


def real(*shape: int) -> np.ndarray:
    return _GENERATOR.uniform(-1, 1, shape).astype("float32")


def whole(*items: Any) -> np.ndarray:
    return np.asarray(items, "int32")


def variable_place(name: str, values: Sequence[Any]) -> int | None:
    """The input that is the model's: the first tensor of numbers, else the first that is no shape."""
    real_ones = [place for place, value in enumerate(values) if value.dtype.kind == "f" and value.ndim]
    return next(iter(real_ones), None if name in ("FILL", "RANGE", "ONE_HOT") else 0)


def one_operator(
    name: str, values: Sequence[Any], outputs: Sequence[tuple[tuple[int, ...], str]], options: dict[str, Any]
) -> Model:
    """A model of one operator: one input is the model's, the others are constants."""
    tensors = []
    given = variable_place(name, values)
    for place, value in enumerate(values):
        held = None if place == given else value
        tensors.append(Tensor(place, f"in{place}", value.shape, value.shape, str(value.dtype), None, held))
    for place, (shape, dtype) in enumerate(outputs, len(tensors)):
        tensors.append(Tensor(place, f"out{place - len(values)}", shape, shape, dtype, None, None))
    inputs, results = tuple(range(len(values))), tuple(range(len(values), len(tensors)))
    operator = Operator(name, 0, inputs, results, dict(options))
    return Model(3, "", [Subgraph("main", tensors, () if given is None else (given,), results, [operator])])


def computed(table: ConstantTable, name: str, values: dict[str, np.ndarray]) -> Any:
    """What the expression of a tensor computes for these inputs and the model's weights."""
    body = table.get_expr(name)
    variables = relay.analysis.free_vars(body)
    known = {**values, **{weight: array.numpy() for weight, array in table.params.items()}}
    return Interpreter().run(relay.Function(variables, body), [known[one.name_hint] for one in variables])


def converted_by(method: str, model: Model, values: Sequence[np.ndarray]) -> list[Any]:
    """What the result of a method computes; the method is the operator's conversion."""
    operator = model.subgraphs[0].operators[0].name

    class Mine(OperatorConverter):
        def through(self, op: Any) -> Any:
            assert self.get_op_code_str(op) == operator
            found = getattr(self, method)(op)
            return list(found) if isinstance(found, TupleWrapper) else found

    table = ConstantTable()
    inputs = {f"in{place}": values[place] for place in model.subgraphs[0].inputs}
    for name, value in inputs.items():
        table.set_expr(name, relay.var(name, shape=value.shape, dtype=str(value.dtype)))
    mine = Mine(model, model.subgraphs[0], table)
    mine.convert_map[operator] = mine.through
    mine.check_unsupported_ops()
    mine.convert_op_to_relay()
    names = sorted(name for name in table.exprs if name.startswith("out"))
    return [computed(table, name, inputs) for name in names]


ROW, IMAGE, SMALL = real(3, 4), real(1, 4, 4, 2), np.abs(real(3, 4)) + 0.5
FLAGS = ROW > 0
WINDOW = {
    "padding": "VALID",
    "stride_w": 2,
    "stride_h": 2,
    "filter_w": 2,
    "filter_h": 2,
    "activation": "NONE",
}


def squares(x: np.ndarray) -> np.ndarray:
    """Windows of two by two that do not overlap, along the fourth axis."""
    return x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 2, 4, 2)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


Case = tuple[str, str, list[Any], dict[str, Any], Callable[..., Any]]
CASES: list[Case] = [
    ("abs", "ABS", [ROW], {}, np.abs),
    ("ceil", "CEIL", [ROW], {}, np.ceil),
    ("floor", "FLOOR", [ROW], {}, np.floor),
    ("round", "ROUND", [ROW * 3], {}, np.round),
    ("exp", "EXP", [ROW], {}, np.exp),
    ("log", "LOG", [SMALL], {}, np.log),
    ("sin", "SIN", [ROW], {}, np.sin),
    ("cos", "COS", [ROW], {}, np.cos),
    ("tan", "TAN", [ROW], {}, np.tan),
    ("sqrt", "SQRT", [SMALL], {}, np.sqrt),
    ("rsqrt", "RSQRT", [SMALL], {}, lambda x: 1 / np.sqrt(x)),
    ("neg", "NEG", [ROW], {}, np.negative),
    ("square", "SQUARE", [ROW], {}, np.square),
    ("logistic", "LOGISTIC", [ROW], {}, lambda x: 1 / (1 + np.exp(-x))),
    ("tanh", "TANH", [ROW], {}, np.tanh),
    ("elu", "ELU", [ROW], {}, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    ("relu", "RELU", [ROW], {}, lambda x: np.maximum(x, 0)),
    ("relu6", "RELU6", [ROW * 9], {}, lambda x: np.clip(x, 0, 6)),
    ("relu_n1_to_1", "RELU_N1_TO_1", [ROW * 3], {}, lambda x: np.clip(x, -1, 1)),
    ("leaky_relu", "LEAKY_RELU", [ROW], {"alpha": 0.1}, lambda x: np.where(x > 0, x, 0.1 * x)),
    ("hard_swish", "HARD_SWISH", [ROW * 4], {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("prelu", "PRELU", [IMAGE, real(1, 1, 2)], {}, lambda x, a: np.where(x > 0, x, a * x)),
    ("softmax", "SOFTMAX", [ROW], {"beta": 1.0}, softmax),
    ("log_softmax", "LOG_SOFTMAX", [ROW], {}, lambda x: np.log(softmax(x))),
    ("zeros_like", "ZEROS_LIKE", [ROW], {}, np.zeros_like),
    ("shape", "SHAPE", [ROW], {"out_type": "int32"}, lambda x: whole(3, 4)),
    ("add", "ADD", [ROW, real(4)], {"activation": "RELU"}, lambda x, y: np.maximum(x + y, 0)),
    ("sub", "SUB", [ROW, real(4)], {}, np.subtract),
    ("mul", "MUL", [ROW, real(4)], {}, np.multiply),
    ("div", "DIV", [ROW, SMALL], {}, np.divide),
    ("pow", "POW", [SMALL, real(4)], {}, np.power),
    ("add_n", "ADD_N", [ROW, real(3, 4), real(3, 4)], {}, lambda *items: sum(items)),
    ("maximum", "MAXIMUM", [ROW, real(4)], {}, np.maximum),
    ("minimum", "MINIMUM", [ROW, real(4)], {}, np.minimum),
    ("squared_difference", "SQUARED_DIFFERENCE", [ROW, real(4)], {}, lambda x, y: (x - y) ** 2),
    ("floor_div", "FLOOR_DIV", [whole(7, -7), whole(2, 2)], {}, np.floor_divide),
    ("floor_mod", "FLOOR_MOD", [whole(7, -7), whole(3, 3)], {}, np.mod),
    ("greater", "GREATER", [ROW, real(4)], {}, np.greater),
    ("greater_equal", "GREATER_EQUAL", [ROW, real(4)], {}, np.greater_equal),
    ("less", "LESS", [ROW, real(4)], {}, np.less),
    ("less_equal", "LESS_EQUAL", [ROW, real(4)], {}, np.less_equal),
    ("equal", "EQUAL", [whole(1, 2), whole(1, 3)], {}, np.equal),
    ("not_equal", "NOT_EQUAL", [whole(1, 2), whole(1, 3)], {}, np.not_equal),
    ("logical_and", "LOGICAL_AND", [FLAGS, FLAGS[::-1]], {}, np.logical_and),
    ("logical_or", "LOGICAL_OR", [FLAGS, FLAGS[::-1]], {}, np.logical_or),
    ("logical_not", "LOGICAL_NOT", [FLAGS], {}, np.logical_not),
    ("reduce_min", "REDUCE_MIN", [ROW, whole(1)], {"keep_dims": False}, lambda x, axis: x.min(1)),
    (
        "reduce_max",
        "REDUCE_MAX",
        [ROW, whole(1)],
        {"keep_dims": True},
        lambda x, axis: x.max(1, keepdims=True),
    ),
    ("reduce_mean", "MEAN", [ROW, whole(1)], {"keep_dims": False}, lambda x, axis: x.mean(1)),
    ("reduce_prod", "REDUCE_PROD", [ROW, whole(1)], {"keep_dims": False}, lambda x, axis: x.prod(1)),
    ("reduce_sum", "SUM", [ROW, whole(1)], {"keep_dims": False}, lambda x, axis: x.sum(1)),
    ("reduce_any", "REDUCE_ANY", [FLAGS, whole(1)], {"keep_dims": False}, lambda x, axis: x.any(1)),
    ("arg_max", "ARG_MAX", [ROW, whole(1)[0]], {"output_type": "int64"}, lambda x, axis: x.argmax(1)),
    ("arg_min", "ARG_MIN", [ROW, whole(1)[0]], {"output_type": "int64"}, lambda x, axis: x.argmin(1)),
    (
        "conv2d",
        "CONV_2D",
        [IMAGE, real(3, 1, 1, 2), real(3)],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1},
        lambda x, w, b: x @ w[:, 0, 0].T + b,
    ),
    (
        "depthwise_conv2d",
        "DEPTHWISE_CONV_2D",
        [IMAGE, real(1, 1, 1, 2), real(2)],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1, "multiplier": 1},
        lambda x, w, b: x * w[0, 0, 0] + b,
    ),
    (
        "transpose_conv",
        "TRANSPOSE_CONV",
        [whole(1, 4, 4, 3), real(3, 1, 1, 2), IMAGE],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1},
        lambda shape, w, x: x @ w[:, 0, 0].T,
    ),
    ("average_pool2d", "AVERAGE_POOL_2D", [IMAGE], WINDOW, lambda x: squares(x).mean(3)),
    ("max_pool2d", "MAX_POOL_2D", [IMAGE], WINDOW, lambda x: squares(x).max(3)),
    ("l2_pool2d", "L2_POOL_2D", [IMAGE], WINDOW, lambda x: np.sqrt((squares(x) ** 2).mean(3))),
    ("fully_connected", "FULLY_CONNECTED", [ROW, real(2, 4), real(2)], {}, lambda x, w, b: x @ w.T + b),
    (
        "l2_normalization",
        "L2_NORMALIZATION",
        [ROW],
        {},
        lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)),
    ),
    (
        "lrn",
        "LOCAL_RESPONSE_NORMALIZATION",
        [IMAGE],
        {"depth_radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.5},
        lambda x: x / np.sqrt(1 + 0.5 * (x * x).sum(-1, keepdims=True)),
    ),
    ("reshape", "RESHAPE", [ROW, whole(2, 6)], {"new_shape": [2, 6]}, lambda x, shape: x.reshape(2, 6)),
    (
        "resize_nearest_neighbor",
        "RESIZE_NEAREST_NEIGHBOR",
        [IMAGE, whole(8, 8)],
        {},
        lambda x, size: x.repeat(2, 1).repeat(2, 2),
    ),
    (
        "resize_bilinear",
        "RESIZE_BILINEAR",
        [np.ones((1, 2, 2, 1), "float32"), whole(3, 3)],
        {},
        lambda x, size: np.ones((1, 3, 3, 1)),
    ),
    ("range", "RANGE", [whole(1)[0], whole(9)[0], whole(3)[0]], {}, lambda *ends: whole(1, 4, 7)),
    ("fill", "FILL", [whole(2, 3), np.float32(7)], {}, lambda shape, value: np.full((2, 3), 7)),
    (
        "concatenation",
        "CONCATENATION",
        [ROW, real(3, 2)],
        {"axis": 1},
        lambda x, y: np.concatenate([x, y], 1),
    ),
    ("gather", "GATHER", [ROW, whole(2, 0)], {"axis": 1}, lambda x, at: x[:, at]),
    ("gather_nd", "GATHER_ND", [ROW, whole([0, 1], [2, 3])], {}, lambda x, at: x[[0, 2], [1, 3]]),
    (
        "strided_slice",
        "STRIDED_SLICE",
        [ROW, whole(0, 1), whole(2, 4), whole(1, 2)],
        {},
        lambda x, *ends: x[0:2, 1:4:2],
    ),
    ("slice", "SLICE", [ROW, whole(1, 0), whole(2, 3)], {}, lambda x, *ends: x[1:3, 0:3]),
    ("squeeze", "SQUEEZE", [real(1, 3, 1)], {"squeeze_dims": [0]}, lambda x: x[0]),
    ("expand_dims", "EXPAND_DIMS", [ROW, whole(0)], {}, lambda x, axis: x[None]),
    ("split", "SPLIT", [whole(1)[0], ROW], {"num_split": 2}, lambda axis, x: np.split(x, 2, 1)),
    (
        "split_v",
        "SPLIT_V",
        [ROW, whole(1, 3), whole(1)[0]],
        {"num_split": 2},
        lambda x, *given: np.split(x, [1], 1),
    ),
    ("select", "SELECT", [FLAGS, ROW, real(3, 4)], {}, np.where),
    ("transpose", "TRANSPOSE", [ROW, whole(1, 0)], {}, lambda x, axes: x.T),
    (
        "reverse_sequence",
        "REVERSE_SEQUENCE",
        [ROW, np.asarray([4, 4, 4])],
        {"seq_dim": 1, "batch_dim": 0},
        lambda x, lengths: x[:, ::-1],
    ),
    ("reverse_v2", "REVERSE_V2", [ROW, whole(1)], {}, lambda x, axis: x[:, ::-1]),
    ("cast", "CAST", [ROW * 5], {"SrcT": "float32", "DstT": "int32"}, lambda x: x.astype("int32")),
    ("tile", "TILE", [ROW, whole(2, 1)], {}, lambda x, times: np.tile(x, (2, 1))),
    ("topk_v2", "TOPK_V2", [ROW, whole(2)[0]], {}, lambda x, k: [-np.sort(-x)[:, :2], np.argsort(-x)[:, :2]]),
    ("pad", "PAD", [ROW, whole([1, 0], [0, 2])], {}, lambda x, pads: np.pad(x, ((1, 0), (0, 2)))),
    (
        "mirror_pad",
        "MIRROR_PAD",
        [ROW, whole([1, 0], [0, 2])],
        {"mode": "REFLECT"},
        lambda x, pads: np.pad(x, ((1, 0), (0, 2)), "reflect"),
    ),
    ("pack", "PACK", [ROW, real(3, 4)], {"values_count": 2, "axis": 0}, lambda x, y: np.stack([x, y])),
    ("unpack", "UNPACK", [ROW], {"num": 3, "axis": 0}, list),
    (
        "batch_to_space_nd",
        "BATCH_TO_SPACE_ND",
        [real(4, 1, 1, 1), whole(2, 2), whole([0, 0], [0, 0])],
        {},
        lambda x, *given: x.reshape(1, 2, 2, 1),
    ),
    (
        "space_to_batch_nd",
        "SPACE_TO_BATCH_ND",
        [real(1, 2, 2, 1), whole(2, 2), whole([0, 0], [0, 0])],
        {},
        lambda x, *given: x.reshape(4, 1, 1, 1),
    ),
    (
        "depth_to_space",
        "DEPTH_TO_SPACE",
        [real(1, 1, 1, 4)],
        {"block_size": 2},
        lambda x: x.reshape(1, 2, 2, 1),
    ),
    (
        "space_to_depth",
        "SPACE_TO_DEPTH",
        [real(1, 2, 2, 1)],
        {"block_size": 2},
        lambda x: x.reshape(1, 1, 1, 4),
    ),
    (
        "sparse_to_dense",
        "SPARSE_TO_DENSE",
        [whole(1, 3), whole(4), np.float32([5, 6]), np.float32(0)],
        {},
        lambda *given: np.float32([0, 5, 0, 6]),
    ),
    (
        "one_hot",
        "ONE_HOT",
        [whole(0, 2), whole(3)[0], np.float32(1), np.float32(0)],
        {"axis": -1},
        lambda at, *given: np.eye(3)[at],
    ),
    ("matrix_diag", "MATRIX_DIAG", [real(3)], {}, np.diag),
    (
        "matrix_set_diag",
        "MATRIX_SET_DIAG",
        [real(2, 2), np.zeros(2, "float32")],
        {},
        lambda x, d: x * (1 - np.eye(2)),
    ),
    ("densify", "DENSIFY", [ROW], {}, lambda x: x),
    (
        "fake_quant",
        "FAKE_QUANT",
        [ROW * 3],
        {"min": -1.0, "max": 1.0, "num_bits": 8, "narrow_range": False},
        lambda x: np.round(np.clip(x, -1, 1) * 127.5) / 127.5,
    ),
]


@pytest.mark.parametrize(
    ("name", "operator", "values", "options", "reference"), CASES, ids=[one[0] for one in CASES]
)
def test_a_method_converts_its_operator(
    name: str, operator: str, values: list[Any], options: dict[str, Any], reference: Callable[..., Any]
) -> None:
    """As NumPy computes it."""
    arrays = [np.asarray(value) for value in values]
    wanted = reference(*arrays)
    expected = [np.asarray(one) for one in wanted] if isinstance(wanted, list) else [np.asarray(wanted)]
    model = one_operator(operator, arrays, [(one.shape, str(one.dtype)) for one in expected], options)
    found = converted_by(f"convert_{name}", model, arrays)
    assert len(found) == len(expected)
    tolerance = 0.02 if name == "fake_quant" else 1e-4
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)


def test_families_name_their_operator() -> None:
    """``convert_conv`` and ``convert_pool2d`` take the kind; a method refuses another operator."""
    kernel = real(3, 1, 1, 2)
    model = one_operator(
        "CONV_2D",
        [IMAGE, kernel],
        [((1, 4, 4, 3), "float32")],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1},
    )

    class Mine(OperatorConverter):
        def convert_conv2d(self, op: Any) -> Any:
            with pytest.raises(ModelError, match="converts DEPTHWISE_CONV_2D, not CONV_2D"):
                self.convert_depthwise_conv2d(op)
            with pytest.raises(ModelError, match="converts MAX_POOL_2D, not CONV_2D"):
                self.convert_pool2d(op, "max")
            left, right = self.get_input_tensors(op)
            assert self.get_tensor_type_as_numpy(left) is np.float32
            assert [one.tensor_idx for one in self.get_tensors([1, -1])] == [right.tensor_idx]
            assert not self.has_same_qnn_params(left, right)
            self.set_prefetched_node(7, "dense")
            assert self.is_prefetched(7) and self.get_prefetched_node(7) == "dense"
            made = self.convert_fused_activation_function(self.convert_conv(op, "conv2d"), 1)
            steps = self.convert_qnn_fused_activation_function(
                relay.const(whole(-9, 9, 90)), 3, 0.1, 5, "int8"
            )
            np.testing.assert_array_equal(Interpreter().run(steps), [5, 9, 65])
            return made

    table = ConstantTable()
    x = relay.var("in0", shape=IMAGE.shape)
    table.set_expr("in0", x)
    converter = Mine(model, model.subgraphs[0], table)
    assert set(converter.overrides()) == {"CONV_2D"}
    converter.convert_op_to_relay()
    assert table.has_expr("out0")
    found = computed(table, "out0", {"in0": IMAGE})
    np.testing.assert_allclose(found, np.maximum(IMAGE @ kernel[:, 0, 0].T, 0), rtol=1e-4, atol=1e-6)


def test_quantised_tensors() -> None:
    """QUANTIZE and DEQUANTIZE go through their methods."""
    of = Quantization(np.float32([0.5]), np.asarray([3]), 0)
    for name, source, target in (("quantize", None, of), ("dequantize", of, None)):
        first, second = ("float32", "int8") if source is None else ("int8", "float32")
        tensors = [
            Tensor(0, "in0", (3,), (3,), first, source, None),
            Tensor(1, "out0", (3,), (3,), second, target, None),
        ]
        graph = Subgraph("main", tensors, (0,), (1,), [Operator(name.upper(), 0, (0,), (1,), {})])
        data = np.asarray([1, 2, 4], first)
        (found,) = converted_by(f"convert_{name}", Model(3, "", [graph]), [data])
        np.testing.assert_array_equal(found, data / 0.5 + 3 if source is None else (data - 3) * 0.5)


def test_unsupported_operators_are_listed() -> None:
    """In one error."""
    model = one_operator("CUSTOM:Nothing", [ROW], [((3, 4), "float32")], {})
    with pytest.raises(UnsupportedOperators, match="Nothing"):
        OperatorConverter(model, model.subgraphs[0], ConstantTable()).check_unsupported_ops()


def test_functions_beside_the_converter() -> None:
    """Constants, names, padding, and wrappers of one's own."""
    assert tflite.get_scalar_from_constant(relay.const(3)) == 3
    with pytest.raises(ValueError, match="shape"):
        tflite.get_scalar_from_constant(relay.const(ROW))
    np.testing.assert_array_equal(tflite.get_tensor_from_constant(relay.const(ROW)), ROW)
    with pytest.raises(ValueError, match="constant"):
        tflite.get_tensor_from_constant(relay.var("x"))
    assert tflite.build_str_map(SimpleNamespace(ADD=0, MUL=18)) == {0: "ADD", 18: "MUL"}
    assert tflite.get_pad_value(5, 3, 2) == (1, 1) and tflite.get_pad_value(6, 3, 2) == (0, 1)
    model = one_operator("RELU", [ROW], [((3, 4), "float32")], {})
    assert tflite.get_tensor_name(model.subgraphs[0], 1) == "out0"
    mine = tflite.TensorWrapper(3, None, None)
    assert isinstance(mine, TensorWrapper) and mine.qnn_params is None
    with pytest.raises(ModelError, match="tensor 3"):
        mine.known()


def test_a_sparse_tensor_of_the_package() -> None:
    """Compressed rows, as objects of the ``tflite`` package have them."""
    rows, columns = np.asarray([0, 2, 3], "int32"), np.asarray([0, 3, 2], "int32")
    compressed = {
        0: Number("int8", 1),
        2: Number("uint8", 1),
        3: {0: rows},
        4: Number("uint8", 1),
        5: {0: columns},
    }
    levels = [{0: Number("int8", 0), 1: Number("int32", 2)}, compressed]
    content = flatbuffer({0: np.asarray([0, 1], "int32"), 2: levels})
    position = int.from_bytes(content[:4], "little")
    table = SimpleNamespace(_tab=SimpleNamespace(Bytes=content, Pos=position))
    tensor = SimpleNamespace(
        Sparsity=lambda: table, Name=lambda: b"w", ShapeAsNumpy=lambda: np.asarray([2, 4])
    )
    found = tflite.prepare_dense_matrix_from_sparse(tensor, [1, 2, 3], "float32")
    np.testing.assert_array_equal(found, [[1, 0, 0, 2], [0, 0, 3, 0]])
