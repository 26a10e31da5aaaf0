"""PaddlePaddle's models: files that PaddlePaddle wrote, operators against NumPy, and errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.interpreting import interpreted
from tests.relay.frontend.paddle.models import Array, Builder, single

from tilewright import relay
from tilewright.relay.frontend.paddle.format import FRONTEND
from tilewright.relay.frontend.paddle.registry import converted_names
from tilewright.relay.frontend.registry import guess_frontend, import_model
from tilewright.support.errors import ModelError, OpNotImplemented

DATA = Path(__file__).parent / "data"
RANDOM = np.random.default_rng(0)
TVM = """
abs acos addmm arg_max arg_min argsort asin assign assign_value atan batch_norm bicubic_interp_v2
bilinear_interp_v2 bmm brelu cast ceil concat conv2d cos cosh cumsum depthwise_conv2d dot dropout
elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min elementwise_mod
elementwise_mul elementwise_pow elementwise_prod elementwise_sub equal erf exp expand_v2 expand_as_v2
fill_any_like fill_constant flatten_contiguous_range floor floor_mod gather gather_nd gelu greater_equal
greater_than group_norm hard_shrink hard_sigmoid hard_swish isfinite_v2 isinf_v2 isnan_v2 layer_norm
leaky_relu less_equal less_than log log2 log10 logical_and logical_not logical_or logical_xor lookup_table_v2
matmul matmul_v2 mul nearest_interp_v2 not_equal pad1d pad2d pad3d pool2d pow relu relu6 reshape2 round
reciprocal reduce_all reduce_any reduce_max reduce_min reduce_prod reduce_sum reduce_mean rsqrt scale scatter
scatter_nd_add selu shape sigmoid sign sin sinh size slice softmax softplus softsign sqrt square squeeze2
swish tan tanh transpose2 unsqueeze2
"""
"""What TVM 0.8 converts, but for feed, which is an input."""


def floats(*shape: int) -> Array:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


X = floats(2, 3, 4)
IMAGE = floats(1, 2, 5, 6)


def close(made: Array, expected: Any) -> None:
    """The same shape and almost the same numbers."""
    assert made.shape == np.shape(expected)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["paddle2.pdmodel", "paddle3.json"])
def test_files_of_both_generations(name: str) -> None:
    """A convolutional and recurrent network saved by PaddlePaddle 2.6 and 3.3 computes what it computed there."""
    expected = np.load((DATA / name).with_suffix(".npz"))
    module, params = relay.frontend.from_paddle(DATA / name)
    made = interpreted(module, params, {"image": expected["image"], "mask": expected["mask"]})
    close(made[0], expected["result0"])
    close(made[1], expected["result1"])
    # Places of equal elements may come in any order.
    assert made[2].shape == expected["result2"].shape and made[2].dtype == "int64"


@pytest.mark.parametrize("name", ["paddle2.pdmodel", "paddle3.json"])
def test_files_are_guessed_and_described(name: str) -> None:
    """The format is told by the suffix, or for JSON text by its beginning; the description names what goes in."""
    path = str(DATA / name)
    assert guess_frontend(path).name == "paddle"
    module, _ = import_model(path)
    assert [one.name_hint for one in module["main"].params[:2]] == ["image", "mask"]
    described = FRONTEND.describe(path)
    assert [(one.name, one.shape) for one in described.inputs] == [
        ("image", (1, 2, 6, 8)),
        ("mask", (1, 8, 5)),
    ]
    assert described.operators["conv2d"] >= 1 and next(iter(described.weights.values())).tensors == 16
    assert FRONTEND.list_unsupported(path) == []


def test_every_operator_of_tvm_is_converted() -> None:
    """TVM 0.8's table is a part of this one."""
    assert set(TVM.split()) - set(converted_names()) == set()


# Operators against NumPy

CASES: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("elementwise_add", {"X": IMAGE, "Y": floats(2)}, {"axis": 1}, None),
    ("relu6", {"X": X * 9}, {"threshold": 6.0}, np.clip(X * 9, 0, 6)),
    ("scale", {"X": X}, {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}, (X + 1) * 2),
    ("leaky_relu", {"X": X}, {"alpha": 0.1}, np.where(X > 0, X, X * 0.1)),
    ("hard_swish", {"X": X}, {}, X * np.clip(X + 3, 0, 6) / 6),
    ("softsign", {"X": X}, {}, X / (1 + np.abs(X))),
    ("gelu", {"X": X}, {}, X * 0.5 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))),
    ("round", {"X": np.float32([0.5, -1.5, 2.4])}, {}, [1, -2, 2]),
    ("reduce_sum", {"X": X}, {"dim": [1], "keep_dim": True}, X.sum(1, keepdims=True)),
    ("reduce_max", {"X": X}, {"reduce_all": True}, X.max()),
    ("arg_max", {"X": X}, {"axis": 1, "dtype": 3}, X.argmax(1)),
    ("matmul_v2", {"X": X, "Y": X}, {"trans_y": True}, X @ X.transpose(0, 2, 1)),
    ("matmul", {"X": X, "Y": floats(4, 5)}, {"alpha": 0.5}, None),
    ("mul", {"X": X, "Y": X.reshape(12, 2)}, {"x_num_col_dims": 1}, X.reshape(2, 12) @ X.reshape(12, 2)),
    ("reshape2", {"X": X}, {"shape": [0, -1]}, X.reshape(2, 12)),
    ("transpose2", {"X": X}, {"axis": [2, 0, 1]}, X.transpose(2, 0, 1)),
    ("squeeze2", {"X": X[:, :1]}, {"axes": [1]}, X[:, 0]),
    ("unsqueeze2", {"X": X}, {"axes": [0, 3]}, X[None, :, :, None]),
    ("flatten_contiguous_range", {"X": X}, {"start_axis": 1, "stop_axis": 2}, X.reshape(2, 12)),
    ("concat", {"X": [X, X]}, {"axis": 1}, np.concatenate([X, X], 1)),
    ("expand_v2", {"X": X[:, :1]}, {"shape": [-1, 5, 4]}, np.repeat(X[:, :1], 5, 1)),
    ("slice", {"Input": X}, {"axes": [1], "starts": [-2], "ends": [2147483647]}, X[:, -2:]),
    ("slice", {"Input": X}, {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]}, X[:, 1]),
    (
        "strided_slice",
        {"Input": X},
        {"axes": [2], "starts": [-1], "ends": [-5], "strides": [-1]},
        X[:, :, ::-1],
    ),
    ("gather", {"X": X, "Index": np.int64([2, 0])}, {"axis": 1}, X[:, [2, 0]]),
    ("gather_nd", {"X": X, "Index": np.int64([[0, 1], [1, 2]])}, {}, X[[0, 1], [1, 2]]),
    ("one_hot_v2", {"X": np.int64([0, 2])}, {"depth": 3}, np.eye(3)[[0, 2]]),
    ("cumsum", {"X": X}, {"axis": 1, "reverse": True}, X[:, ::-1].cumsum(1)[:, ::-1]),
    ("pad3d", {"X": IMAGE[None]}, {"paddings": [1, 0, 0, 2, 0, 0], "value": 3.0}, None),
    ("dropout", {"X": X}, {"dropout_prob": 0.25}, X * 0.75),
    ("clip", {"X": X}, {"min": -0.5, "max": 0.5}, X.clip(-0.5, 0.5)),
    ("tril_triu", {"X": X[0]}, {"lower": True, "diagonal": 0}, np.tril(X[0])),
    ("p_norm", {"X": X}, {"porder": 3.0, "axis": 2}, (np.abs(X) ** 3).sum(2) ** (1 / 3)),
]
EXPECTED = {
    "elementwise_add": lambda inputs: inputs["X"] + inputs["Y"][:, None, None],
    "matmul": lambda inputs: inputs["X"] @ inputs["Y"] * 0.5,
    "pad3d": lambda inputs: np.pad(
        inputs["X"], ((0, 0), (0, 0), (0, 0), (0, 2), (1, 0)), constant_values=3.0
    ),
}


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), CASES, ids=[case[0] for case in CASES])
def test_operator(kind: str, inputs: dict[str, Any], attributes: dict[str, Any], expected: Any) -> None:
    """An operator computes what NumPy does."""
    (made,) = single(kind, inputs, None, **attributes)
    close(made, EXPECTED[kind](inputs) if expected is None else expected)


def test_split_has_several_results() -> None:
    """Sections of which one is what is left."""
    made = single("split", {"X": X}, {"Out": 2}, axis=1, sections=[1, -1])
    close(made[0], X[:, :1])
    close(made[1], X[:, 1:])


def test_same_padding_ignores_dilation() -> None:
    """PaddlePaddle sets dilations to one where the padding is SAME; the result has the size of the image."""
    weight = floats(3, 2, 3, 3)
    inputs = {"Input": IMAGE, "Filter": weight}
    shared: dict[str, Any] = {"strides": [1, 1], "paddings": [0, 0], "padding_algorithm": "SAME", "groups": 1}
    dilated = single("conv2d", inputs, {"Output": 1}, dilations=[2, 2], **shared)[0]
    plain = single("conv2d", inputs, {"Output": 1}, dilations=[1, 1], **shared)[0]
    assert dilated.shape == (1, 3, 5, 6)
    close(dilated, plain)


def test_shapes_that_follow_from_an_open_size() -> None:
    """A reshape by the shape of an input whose batch is open keeps the batch open."""
    builder = Builder()
    data = builder.input("x", (-1, 3, 4))
    (shape,) = builder.operator("shape", {"Input": [data]}, {"Out": 1})
    (batch,) = builder.operator(
        "slice", {"Input": [shape]}, {"Out": 1}, axes=[0], starts=[0], ends=[1], decrease_axis=[0]
    )
    (rest,) = builder.operator("fill_constant", {}, {"Out": 1}, shape=[1], dtype=2, value=-1.0)
    (made,) = builder.operator("reshape2", {"X": [data], "ShapeTensor": [batch, rest]}, {"Out": 1})
    content = builder.program(made)
    module, _ = relay.frontend.from_paddle(content)
    assert len(module["main"].checked_type.ret_type.shape) == 2
    module, params = relay.frontend.from_paddle(content, {"x": (2, 3, 4)})
    close(interpreted(module, params, {"x": X})[0], X.reshape(2, 12))


# Files and errors


def small() -> Builder:
    """A program of one fully connected layer."""
    builder = Builder()
    builder.input("x", (-1, 3))
    builder.parameter("weight", floats(3, 2))
    return builder


def test_a_program_with_its_parameters(tmp_path: Path) -> None:
    """Files beside each other, bytes, and a dictionary of arrays are the same model."""
    builder = small()
    (made,) = builder.operator("matmul_v2", {"X": ["x"], "Y": ["weight"]}, {"Out": 1})
    content = builder.program(made)
    (tmp_path / "net.pdmodel").write_bytes(content)
    (tmp_path / "net.pdiparams").write_bytes(builder.parameters_file())
    rows = floats(4, 3)
    for model, scope in [
        (tmp_path / "net", None),
        (str(tmp_path / "net.pdmodel"), None),
        (content, builder.parameters_file()),
        (content, builder.parameters),
    ]:
        module, params = relay.frontend.from_paddle(model, {"x": (4, 3)}, scope)
        close(interpreted(module, params, {"x": rows})[0], rows @ builder.parameters["weight"])


def test_one_error_lists_every_unsupported_operator() -> None:
    """The error names the operators and the tensors that they make."""
    builder = small()
    (first,) = builder.operator("strange", {"X": ["x"]}, {"Out": 1})
    (second,) = builder.operator("stranger", {"X": [first]}, {"Out": 1})
    with pytest.raises(OpNotImplemented, match=r"(?s)2 operators.*strange, 1: result0.*stranger, 1: result1"):
        relay.frontend.from_paddle(builder.program(second), scope={})


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Each kind of damage is one sentence."""
    builder = small()
    (made,) = builder.operator("matmul_v2", {"X": ["x"], "Y": ["weight"]}, {"Out": 1})
    content, values = builder.program(made), builder.parameters_file()
    cases = [
        (b"no program", None, "not a PaddlePaddle program"),
        (b"{}", None, "not a PaddlePaddle program"),
        (content[:40], None, "not a PaddlePaddle program"),
        (content, None, "their values are not given"),
        (content, values[:-3], "the file ends within 'weight'"),
        (content, values + b"more", "4 bytes are left"),
        (content, {}, "neither computed, nor an input, nor among the parameters"),
    ]
    for model, scope, message in cases:
        with pytest.raises(ModelError, match=message):
            relay.frontend.from_paddle(model, {"x": (4, 3)}, scope)
    with pytest.raises(ModelError, match="has no input 'y'"):
        relay.frontend.from_paddle(content, {"y": (4, 3)}, values)
    (tmp_path / "net.pdiparams").write_bytes(values)
    with pytest.raises(ModelError, match="holds parameters only"):
        import_model(str(tmp_path / "net.pdiparams"))


def test_a_damaged_json_program_is_refused() -> None:
    """An operation that refers to a value that there is not."""
    document = json.loads((DATA / "paddle3.json").read_text())
    operations = document["program"]["regions"][0]["blocks"][0]["ops"]
    operations[-1]["I"][0]["%"] = 9999
    with pytest.raises(ModelError, match="there is no value 9999"):
        relay.frontend.from_paddle(json.dumps(document).encode(), scope=DATA / "paddle3.pdiparams")
