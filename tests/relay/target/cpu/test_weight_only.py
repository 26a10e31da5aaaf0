"""KeepWeightsPacked: products with dequantised weights read integers, whatever form the model has."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import helper, numpy_helper
from tests.relay.frontend.onnx import reference_runtime

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.frontend.onnx import from_onnx

PACKED = "nn.contrib_dense_weight_only"
RANDOM = np.random.default_rng(3)
TARGETS = ["llvm", "llvm -mcpu=core-avx2"]


def built(module: tvm.IRModule, params: dict[str, Any], target: str) -> Any:
    """A program, with everything that is constant known to it."""
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(module, target, params=params)


def optimized(module: tvm.IRModule, params: dict[str, Any], target: str = "llvm") -> str:
    """The text of an optimised program."""
    with tvm.transform.PassContext(opt_level=3):
        return str(relay.optimize(module, target, params)[0])


def result(library: Any, **inputs: Any) -> Any:
    """What a program gives."""
    executor = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    executor.set_input(**inputs)
    executor.run()
    return executor.get_output(0).numpy()


def product(w: relay.Expr, rows: int, depth: int, dtype: str = "float32") -> tvm.IRModule:
    """Rows times a transposed weight."""
    x = relay.var("x", shape=(rows, depth), dtype=dtype)
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, w)))


def dequantized(integers: Any, scales: Any, zeros: Any, group: int) -> tuple[relay.Expr, Any]:
    """A weight (units, features) from integers, and scales and zero points of groups; as an expression and a value."""
    units, depth = integers.shape
    grouped = relay.reshape(relay.const(integers), (units, depth // group, group))
    centred = relay.subtract(relay.cast(grouped, "float32"), relay.const(zeros[:, :, None].astype("float32")))
    made = relay.reshape(relay.multiply(centred, relay.const(scales[:, :, None])), (units, depth))
    value = (integers - zeros.astype("float64").repeat(group, 1)) * scales.repeat(group, 1)
    return made, value


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("bits", "rows", "units", "depth", "group", "zero"),
    [
        (4, 1, 70, 128, 32, "same"),
        (4, 3, 40, 96, 16, "each"),
        (8, 2, 33, 512, 512, "each"),
        (2, 1, 16, 64, 32, "same"),
    ],
)
def test_integers_in_groups(
    target: str, bits: int, rows: int, units: int, depth: int, group: int, zero: str
) -> None:
    """Rows times a weight of few bits are those of float64, as exactly as float32 allows."""
    groups = depth // group
    integers = RANDOM.integers(0, 1 << bits, (units, depth)).astype("uint8")
    zeros = np.full((units, groups), 1 << (bits - 1), "uint8")
    if zero == "each":
        zeros = RANDOM.integers(0, 1 << bits, (units, groups)).astype("uint8")
    scales = (RANDOM.random((units, groups)) + 0.5).astype("float32")
    weight, value = dequantized(integers, scales, zeros, group)
    module = product(weight, rows, depth)
    assert PACKED in optimized(module, {}, target)
    data = RANDOM.standard_normal((rows, depth)).astype("float32")
    found = result(built(module, {}, target), x=data)
    bound = 4e-7 * (np.abs(data) @ np.abs(value).T).max() * 2
    np.testing.assert_allclose(found, data @ value.T, rtol=0, atol=bound)


def matmul_n_bits(bits: int, with_zeros: bool) -> onnx.ModelProto:
    """A product as ONNX Runtime's tools write it."""
    depth, units, block = 80, 48, 32
    blocks = -(-depth // block)
    stored = {
        "b": RANDOM.integers(0, 256, (units, blocks, block * bits // 8)).astype("uint8"),
        "s": (RANDOM.random((units, blocks)) * 0.01 + 0.01).astype("float32"),
    }
    if with_zeros:
        stored["z"] = RANDOM.integers(0, 256, (units, -(-blocks * bits // 8))).astype("uint8")
    node = helper.make_node(
        "MatMulNBits",
        ["a", *stored],
        ["y"],
        domain="com.microsoft",
        K=depth,
        N=units,
        bits=bits,
        block_size=block,
    )
    return model([node], (2, depth), (2, units), stored)


def blocked_dequantize(kind: int) -> onnx.ModelProto:
    """A product with DequantizeLinear in blocks before its weight."""
    depth, units = 64, 40
    values = RANDOM.integers(0, 16, (depth, units)) - (8 if kind == onnx.TensorProto.INT4 else 0)
    weight = helper.make_tensor("w", kind, values.shape, values.ravel().tolist())
    scales = (RANDOM.random((depth // 32, units)) + 0.1).astype("float32")
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
        helper.make_node("MatMul", ["a", "d"], ["y"]),
    ]
    made = model(nodes, (1, depth), (1, units), {"s": scales})
    made.graph.initializer.append(weight)
    return made


def per_channel_dequantize() -> onnx.ModelProto:
    """A product with a weight of int8 and a scale for each column."""
    depth, units = 72, 24
    stored = {
        "w": RANDOM.integers(-128, 128, (depth, units)).astype("int8"),
        "s": (RANDOM.random(units) + 0.1).astype("float32"),
        "z": np.zeros(units, "int8"),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=1),
        helper.make_node("MatMul", ["a", "d"], ["y"]),
    ]
    return model(nodes, (1, depth), (1, units), stored)


def model(nodes: Any, given: Any, made: Any, stored: dict[str, Any]) -> onnx.ModelProto:
    """A model from ``a`` to ``y``."""
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, made)],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize(
    ("made", "exact"),
    [
        (lambda: matmul_n_bits(4, True), True),
        (lambda: matmul_n_bits(8, False), True),
        (lambda: blocked_dequantize(onnx.TensorProto.INT4), False),
        (lambda: blocked_dequantize(onnx.TensorProto.UINT4), False),
        (per_channel_dequantize, False),
    ],
    ids=["4 bits, zero points", "8 bits", "int4 blocks", "uint4 blocks", "int8 columns"],
)
def test_models_give_what_onnx_runtime_gives(made: Any, exact: bool) -> None:
    """Every form in which a model stores such weights stays packed, and gives ONNX Runtime's result. ONNX Runtime
    multiplies weights that DequantizeLinear gives in int8: there the definition is what is exact."""
    onnx_model = made()
    module, params = from_onnx(onnx_model)
    assert PACKED in optimized(module, params)
    extents = [d.dim_value for d in onnx_model.graph.input[0].type.tensor_type.shape.dim]
    data = RANDOM.standard_normal(extents).astype("float32")
    found = result(built(module, params, "llvm"), a=data)
    expected = reference_runtime.outputs(onnx_model, {"a": data})[0]
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=(1e-6 if exact else 2e-2) * size)
    if not exact:
        defined = onnx.reference.ReferenceEvaluator(onnx_model).run(None, {"a": data})[0]
        np.testing.assert_allclose(found, defined, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("target", TARGETS)
def test_float16_data(target: str) -> None:
    """Data of float16 are widened in registers, and sums are rounded once."""
    integers = RANDOM.integers(-8, 8, (32, 64)).astype("int8")
    scales = np.full((32, 2), 0.125, "float32")
    weight, value = dequantized(integers, scales, np.zeros((32, 2), "int8"), 32)
    module = product(relay.cast(weight, "float16"), 2, 64, "float16")
    assert PACKED in optimized(module, {}, target)
    data = RANDOM.standard_normal((2, 64)).astype("float16")
    found = result(built(module, {}, target), x=data)
    np.testing.assert_array_equal(found, (data.astype("float64") @ value.T).astype("float16"))


def test_extreme_data() -> None:
    """Zeros, tiny numbers, outliers, infinities and NaN give what float64 gives."""
    integers = RANDOM.integers(-8, 8, (16, 64)).astype("int8")
    integers[:, 0] = 1
    weight, value = dequantized(integers, np.ones((16, 2), "float32"), np.zeros((16, 2), "int8"), 32)
    data = np.zeros((5, 64), "float32")
    data[1, 3:9] = 1e-34
    data[2] = RANDOM.standard_normal(64)
    data[2, 40] = 1e4
    data[3, 0] = np.inf
    data[4, 5] = np.nan
    found = result(built(product(weight, 5, 64), {}, "llvm"), x=data)
    with np.errstate(invalid="ignore"):
        expected = data.astype("float64") @ value.T
    np.testing.assert_allclose(found[:3], expected[:3], rtol=1e-5, atol=2e-35)
    assert not np.isfinite(found[3:]).any()


def test_what_stays() -> None:
    """Many rows, weights with a scale for each feature, and numbers beyond bytes are folded as before."""
    integers = RANDOM.integers(-8, 8, (32, 64)).astype("int8")
    weight, _ = dequantized(integers, np.ones((32, 2), "float32"), np.zeros((32, 2), "int8"), 32)
    assert PACKED in optimized(product(weight, 1, 64), {})
    assert PACKED not in optimized(product(weight, 1000, 64), {})
    numbers = relay.cast(relay.const(integers), "float32")
    beyond = relay.subtract(numbers, relay.const(np.float32(1000)))
    for made in (
        relay.multiply(numbers, relay.const(RANDOM.random((1, 64)).astype("float32"))),
        relay.multiply(beyond, relay.const(np.full((32, 1), 0.3, "float32"))),
    ):
        assert PACKED not in optimized(product(made, 1, 64), {})
