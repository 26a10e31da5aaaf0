"""Modules written as ONNX pass its checker, and ONNX Runtime computes what the module does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx import reference_runtime

from tilewright import relay
from tilewright.contrib.target.onnx import to_onnx
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.support.errors import ModelError, OpNotImplemented
from tilewright.topi.nn.recurrent import CELLS

Program = Callable[..., Any]


def floats(*shape: int, seed: int = 0) -> Any:
    """Random numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def module_of(program: Program, *arrays: Any) -> IRModule:
    """A module of a program of variables."""
    variables = [
        relay.var(f"x{number}", shape=array.shape, dtype=str(array.dtype))
        for number, array in enumerate(arrays)
    ]
    return infer_module(IRModule.from_expr(relay.Function(variables, program(*variables))))


def recurrent(cell: str, units: int) -> tuple[Program, tuple[Any, ...]]:
    """A recurrent layer of blocks of four units."""
    kind, blocks = CELLS[cell], -(-units // 4)
    count = 2 + kind.states
    arrays = (
        floats(3, 2, blocks * kind.gates * 4),
        floats(blocks, units, kind.gates, 4) / 4,
        *[floats(2, units, seed=place) for place in range(kind.states)],
        *[floats(blocks * 4, seed=7)] * kind.biases,
    )
    made = lambda *given: relay.nn.contrib_recurrent(
        given[0], given[1], given[2:count], given[count:], cell
    ).astuple()
    return made, arrays


def flat(value: Any) -> list[Any]:
    """The arrays of a value."""
    return (
        [part for item in value for part in flat(item)] if isinstance(value, tuple) else [np.asarray(value)]
    )


def check(
    module: IRModule, arrays: Any, opset: int, params: Any = None, tolerance: float = 1e-4
) -> onnx.ModelProto:
    """The model of a module, which ONNX Runtime runs to the same result."""
    given = dict(params or {})
    model = to_onnx(module, given, "test", opset_version=opset)
    inputs = {info.name: array for info, array in zip(model.graph.input, arrays, strict=True)}
    found = reference_runtime.outputs(model, inputs)
    rest = [given[one.name_hint] for one in module["main"].params if one.name_hint in given]
    expected = flat(Interpreter(module).run(module["main"], [*arrays, *rest]))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    return model


X = floats(2, 4, 6, 6)
V = floats(4, seed=1)
INTS = np.array([[3, -4, 7], [-9, 2, 5]], "int32")
CASES: dict[str, tuple[Program, tuple[Any, ...]]] = {
    "arithmetic": (lambda a, b: (a + b) * a - a / (b * b + relay.const(1.0)), (floats(3, 4), floats(4))),
    "functions": (lambda a: relay.tanh(relay.exp(a)) + relay.rsqrt(relay.abs(a) + relay.const(1.0)), (X,)),
    "logarithms": (lambda a: relay.log2(relay.abs(a)) + relay.log10(relay.abs(a)), (X,)),
    "rounding": (lambda a: relay.round(a) + relay.trunc(a) + relay.floor(a), (X * 3,)),
    "comparisons": (lambda a, b: relay.where(relay.less_equal(a, b), a, b), (floats(3), floats(3, seed=2))),
    "floor division": (lambda a: relay.floor_divide(a, relay.const(4)), (INTS,)),
    "remainders": (lambda a: relay.floor_mod(a, relay.const(4)) + relay.mod(a, relay.const(3)), (INTS,)),
    "extremes": (
        lambda a, b: relay.minimum(relay.maximum(a, relay.const(-2)), b),
        (INTS, np.array([4, 5, 6], "int32")),
    ),
    "clip and cast": (lambda a: relay.cast(relay.clip(a * relay.const(50.0), -20.0, 30.0), "int32"), (X,)),
    "activations": (lambda a, s: relay.nn.prelu(relay.nn.leaky_relu(a, 0.2), s), (X, V)),
    "sums": (lambda a: relay.sum(a, axis=[1, 3]) + relay.max(a, axis=[1, 3]), (X,)),
    "means": (lambda a: relay.mean(a, axis=1, exclude=True, keepdims=True), (X,)),
    "variance": (lambda a: relay.variance(a, axis=[2, 3]), (X,)),
    "arguments": (lambda a: relay.argmax(a, axis=1), (X,)),
    "convolution": (
        lambda a, w, b: relay.nn.bias_add(relay.nn.conv2d(a, w, padding=(1, 0, 1, 2), strides=(2, 1)), b),
        (X, floats(8, 4, 3, 3), floats(8)),
    ),
    "depthwise": (lambda a, w: relay.nn.conv2d(a, w, groups=4, padding=(1, 1)), (X, floats(4, 1, 3, 3))),
    "channels last": (
        lambda a, w: relay.nn.conv2d(a, w, data_layout="NHWC", kernel_layout="HWIO"),
        (floats(1, 6, 6, 4), floats(3, 3, 4, 8)),
    ),
    "along one axis": (lambda a, w: relay.nn.conv1d(a, w, dilation=2), (floats(1, 4, 9), floats(3, 4, 3))),
    "transposed": (
        lambda a, w: relay.nn.conv2d_transpose(a, w, strides=(2, 2), output_padding=(1, 1)),
        (X, floats(4, 3, 3, 3)),
    ),
    "dense": (lambda a, w: relay.nn.dense(a, w), (floats(3, 5), floats(4, 5))),
    "attention": (
        lambda a, b, m: relay.nn.contrib_attention(
            a, b, b, m, 2, 0.5, ("NTHC", "NHTC", "NHTC", "NTHC"), (0, 0, 1)
        ),
        (floats(2, 9, 2, 4), floats(2, 3, 5, 4), floats(1, 1, 5, 9)),
    ),
    "products": (lambda a, b: relay.nn.batch_matmul(a, b), (floats(2, 3, 5), floats(2, 4, 5))),
    "pooling": (
        lambda a: (
            relay.nn.max_pool2d(a, (3, 3), (2, 2), padding=(1, 1))
            + relay.nn.avg_pool2d(a, (3, 3), (2, 2), padding=(1, 1))
        ),
        (X,),
    ),
    "padding that counts": (
        lambda a: relay.nn.avg_pool2d(a, (3, 3), padding=(1, 1), count_include_pad=True),
        (X,),
    ),
    "global pooling": (lambda a: relay.nn.global_avg_pool2d(a) + relay.nn.global_max_pool2d(a), (X,)),
    "adaptive pooling": (lambda a: relay.nn.adaptive_avg_pool2d(a, (3, 2)), (X,)),
    "softmax": (lambda a: relay.nn.softmax(a, axis=1) + relay.nn.log_softmax(a, axis=2), (X,)),
    "batch norm": (
        lambda a, g, b, m, v: relay.nn.batch_norm(a, g, b, m, v)[0],
        (X, V, floats(4, seed=2), floats(4, seed=3), np.abs(V) + 1),
    ),
    "layer norm": (lambda a, g, b: relay.nn.layer_norm(a, g, b), (floats(3, 4), V, floats(4, seed=2))),
    "instance norm": (lambda a, g, b: relay.nn.instance_norm(a, g, b), (X, V, floats(4, seed=2))),
    "group norm": (lambda a, g, b: relay.nn.group_norm(a, g, b, 2), (X, V, floats(4, seed=2))),
    "lengths": (lambda a: relay.nn.l2_normalize(a, 1e-6, axis=[1]), (X,)),
    "response": (lambda a: relay.nn.lrn(a, 3), (X,)),
    "padding": (lambda a: relay.nn.pad(a, ((0, 0), (1, 0), (2, 1), (0, 3)), 1.5), (X,)),
    "mirror": (lambda a: relay.nn.pad(a, ((0, 0), (0, 0), (2, 1), (1, 3)), pad_mode="reflect"), (X,)),
    "resizing": (lambda a: relay.image.resize2d(a, (9, 12)), (X,)),
    "upsampling": (lambda a: relay.nn.upsampling(a, 2, 3), (X,)),
    "channels to space": (lambda a: relay.nn.space_to_depth(relay.nn.depth_to_space(a, 2), 3), (X,)),
    "shapes": (
        lambda a: relay.squeeze(relay.expand_dims(relay.reshape(relay.transpose(a), (6, -1)), 0, 2), [0]),
        (X,),
    ),
    "joining": (lambda a: relay.concatenate([a, a * a], -3), (X,)),
    "stacking": (lambda a: relay.stack([a, a * a], axis=-1), (floats(2, 3),)),
    "splitting": (lambda a: relay.concatenate(list(relay.split(a, (1, 3), axis=2))[::-1], 2), (X,)),
    "slicing": (lambda a: relay.strided_slice(a, [0, 3, 5], [2, 1, 0], [1, -1, -2]), (X,)),
    "slicing with fewer strides": (lambda a: relay.strided_slice(a, [0, 0, 0], [2, 3, 5], [1, 2]), (X,)),
    "slicing with fewer begins": (lambda a: relay.strided_slice(a, [1], [2, -3]), (X,)),
    "slicing backwards": (lambda a: relay.strided_slice(a, [3], [None], [-1], axes=[1]), (X,)),
    "slicing by size": (lambda a: relay.strided_slice(a, [0, 1], [2, -1], slice_mode="size"), (X,)),
    "taking": (lambda a, i: relay.take(a, i, axis=1), (X, np.array([[0, 3], [9, 1]], "int32"))),
    "gathering": (lambda a, i: relay.gather(a, 1, i), (floats(2, 3), np.array([[0, 2], [1, 1]], "int64"))),
    "repeating": (lambda a: relay.repeat(relay.tile(a, (2, 1)), 2, 0), (floats(2, 3),)),
    "broadcasting": (
        lambda a: relay.broadcast_to(a, (5, 2, 3)) + relay.ones((2, 3), "float32"),
        (floats(2, 3),),
    ),
    "reversing": (lambda a: relay.reverse(a, 1) + relay.cumsum(a, 1), (floats(2, 3),)),
    "blocks": (
        lambda a: relay.layout_transform(
            relay.nn.relu(relay.layout_transform(a, "NCHW", "NCHW4c")), "NCHW4c", "NHWC"
        ),
        (X,),
    ),
    "largest": (lambda a: relay.topk(a, k=2, axis=1, ret_type="both")[0], (floats(3, 5),)),
    **{f"recurrent, {cell}": recurrent(cell, units) for cell, units in zip(CELLS, (5, 8, 3, 4), strict=True)},
}


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("name", list(CASES))
def test_operators(name: str, opset: int) -> None:
    """Every operator, in an old and in a new form of the standard."""
    program, arrays = CASES[name]
    check(module_of(program, *arrays), arrays, opset)


def network() -> tuple[IRModule, Any, Any]:
    """A small network, its parameters and an input."""
    data = relay.var("data", shape=(1, 3, 16, 16))
    params = {"w1": floats(16, 3, 3, 3), "b1": floats(16), "w2": floats(16, 16, 3, 3), "w3": floats(10, 16)}
    weights = {name: relay.var(name, shape=value.shape) for name, value in params.items()}
    first = relay.nn.relu(
        relay.nn.bias_add(relay.nn.conv2d(data, weights["w1"], padding=(1, 1)), weights["b1"])
    )
    second = relay.nn.relu(relay.nn.conv2d(first, weights["w2"], padding=(1, 1), strides=(2, 2)))
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(second))
    body = relay.nn.softmax(relay.nn.dense(pooled, weights["w3"]))
    function = relay.Function([data, *weights.values()], body)
    return infer_module(IRModule.from_expr(function)), params, floats(1, 3, 16, 16)


def test_parameters_are_initializers() -> None:
    """The model has one input, and the weights under their names."""
    module, params, data = network()
    model = check(module, [data], 13, params)
    assert [info.name for info in model.graph.input] == ["data"]
    assert {tensor.name for tensor in model.graph.initializer} >= set(params)


@pytest.mark.parametrize("level", [1, 3])
def test_an_optimised_module(level: int) -> None:
    """What the passes made: other layouts and folded weights, still the same numbers."""
    module, params, data = network()
    with PassContext(opt_level=level, disabled_pass=["AlterOpLayout"] if level == 1 else []):
        optimised, rest = relay.optimize(module, "llvm", params)
    check(infer_module(optimised), [data], 13, rest, tolerance=1e-3)


@pytest.mark.parametrize("target", ["llvm -mcpu=znver4", "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell"])
def test_a_module_optimised_for_any_processor(target: str) -> None:
    """Whichever convolutions the processor's model turns into Winograd ones, or into blocked ones."""
    module, params, data = network()
    with PassContext(opt_level=3):
        optimised, rest = relay.optimize(module, target, params)
    check(infer_module(optimised), [data], 13, rest, tolerance=1e-3)


@pytest.mark.parametrize("packed", [False, True])
def test_winograd_convolutions_are_written_as_plain_ones(packed: bool) -> None:
    """The weight is recovered from the transformed one, as it is or packed in blocks of outputs."""
    generator = np.random.default_rng(3)
    weight = generator.standard_normal((8, 4, 3, 3)).astype("float32")
    data = generator.standard_normal((1, 4, 9, 9)).astype("float32")
    transformed = relay.nn.contrib_conv2d_winograd_weight_transform(relay.const(weight), 4)
    if packed:
        transformed = relay.transpose(relay.reshape(transformed, (6, 6, 2, 4, 4)), (0, 1, 2, 4, 3))
    x = relay.var("x", shape=data.shape)
    made = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        x, transformed, 4, padding=(1, 1), channels=8, kernel_size=(3, 3)
    )
    module = relay.transform.FoldConstant()(infer_module(IRModule.from_expr(relay.Function([x], made))))
    model = check(infer_module(module), [data], 13, {}, tolerance=1e-4)
    assert [node.op_type for node in model.graph.node].count("Conv") == 1


def test_fused_functions_are_written_out() -> None:
    """Primitive functions are put in place of their calls."""
    module, params, data = network()
    fused = infer_module(relay.transform.FuseOps(2)(relay.transform.InferType()(module)))
    model = check(fused, [data], 13, params)
    assert [node.op_type for node in model.graph.node].count("Conv") == 2


def test_there_and_back() -> None:
    """A model that is written can be read again."""
    module, params, data = network()
    again, weights = from_onnx(to_onnx(module, params, "again"))
    rest = [weights[one.name_hint].numpy() for one in again["main"].params[1:]]
    found = Interpreter(again).run(again["main"], [data, *rest])
    order = [params[one.name_hint] for one in module["main"].params[1:]]
    expected = Interpreter(module).run(module["main"], [data, *order])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_file_is_written(tmp_path: Path) -> None:
    """Under its name, with nothing beside it."""
    module, params, _ = network()
    to_onnx(module, params, "net", path=str(tmp_path / "net.onnx"), doc_string="small")
    assert [each.name for each in tmp_path.iterdir()] == ["net.onnx"]
    assert onnx.load(str(tmp_path / "net.onnx")).graph.doc_string == "small"


def test_a_batch_that_is_open() -> None:
    """A dimension that is not known has a name in the model."""
    data = relay.var("data", relay.TensorType((relay.Any(), 4), "float32"))
    module = infer_module(IRModule.from_expr(relay.Function([data], relay.nn.relu(data))))
    model = to_onnx(module, {}, "open")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "data_0"
    np.testing.assert_array_equal(
        reference_runtime.outputs(model, {"data": -(floats(7, 4) ** 2)})[0], np.zeros((7, 4))
    )


def test_all_that_cannot_be_written_is_said() -> None:
    """One error names every operator; control flow has one of its own."""
    data = relay.var("data", shape=(2, 3))
    body = relay.argsort(relay.invert_permutation(relay.sum(relay.cast(data, "int32"), 1)))
    with pytest.raises(OpNotImplemented, match=r"argsort \(1\), invert_permutation \(1\)"):
        to_onnx(IRModule.from_expr(relay.Function([data], body)), {}, "no")
    condition = relay.var("c", shape=(), dtype="bool")
    choice = relay.If(condition, data, relay.exp(data))
    with pytest.raises(ModelError, match="an If|a If"):
        to_onnx(IRModule.from_expr(relay.Function([data, condition], choice)), {}, "no")
    with pytest.raises(ModelError, match="the opset 5 cannot be written"):
        to_onnx(IRModule.from_expr(relay.Function([data], data)), {}, "no", opset_version=5)
