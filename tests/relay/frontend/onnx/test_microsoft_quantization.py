"""Quantised operators that ONNX Runtime's tools emit give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)


def unsigned(*shape: int) -> Any:
    """Random bytes."""
    return RANDOM.integers(0, 256, shape).astype("uint8")


def signed(*shape: int) -> Any:
    """Random signed bytes."""
    return RANDOM.integers(-128, 128, shape).astype("int8")


def floats(*shape: int) -> Any:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype("float32")


def through(data: Any, zero: int = 120, scale: float = 0.05) -> dict[str, Any]:
    """A quantised tensor, its parameters, and those of the result."""
    return {
        "x": data,
        "xs": np.float32(scale),
        "xz": np.uint8(zero),
        "ys": np.float32(0.04),
        "yz": np.uint8(100),
    }


def pair(operator: str, left: Any, right: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A case of two quantised tensors."""
    kind = left.dtype.type
    inputs = {
        "a": left,
        "as": np.float32(0.1),
        "az": kind(12),
        "b": right,
        "bs": np.float32(0.2),
        "bz": kind(10),
        "cs": np.float32(0.9),
        "cz": kind(3),
    }
    return operator, inputs, {}


def gemm(per_column: bool, transposed: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A case of QGemm."""
    inputs = {
        "a": unsigned(6, 3),
        "as": np.float32(0.02),
        "az": np.uint8(120),
        "b": signed(5, 3) if transposed else signed(3, 5),
        "bs": floats(5) ** 2 * np.float32(0.02) + np.float32(0.001) if per_column else np.float32(0.02),
        "bz": signed(5) if per_column else np.int8(3),
        "c": RANDOM.integers(-100, 100, 5).astype("int32"),
        "ys": np.float32(0.05),
        "yz": np.uint8(3),
    }
    return "QGemm", inputs, {"transB": int(transposed), "alpha": 1.0 if per_column else 1.5}


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    pair("QLinearAdd", unsigned(3, 4), unsigned(4)),
    pair("QLinearMul", signed(3, 4), signed(3, 1)),
    ("QLinearSigmoid", through(unsigned(3, 4)), {}),
    ("QLinearLeakyRelu", through(unsigned(3, 4)), {"alpha": 0.2}),
    (
        "QLinearAveragePool",
        through(unsigned(1, 3, 8, 8)),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    ("QLinearGlobalAveragePool", through(unsigned(2, 3, 8, 8)), {}),
    ("QLinearGlobalAveragePool", through(unsigned(2, 8, 8, 3)), {"channels_last": 1}),
    ("QLinearSoftmax", through(unsigned(3, 10)), {"axis": -1, "opset": 13}),
    ("QLinearSoftmax", through(unsigned(3, 4, 5)), {"axis": 1, "opset": 11}),
    gemm(per_column=True, transposed=False),
    gemm(per_column=False, transposed=True),
    (
        "QLinearConcat",
        {
            "ys": np.float32(0.1),
            "yz": np.uint8(100),
            "x": unsigned(2, 3),
            "xs": np.float32(0.1),
            "xz": np.uint8(90),
            "w": unsigned(2, 4),
            "ws": np.float32(0.2),
            "wz": np.uint8(110),
        },
        {"axis": 1},
    ),
    (
        "MatMulIntegerToFloat",
        {
            "a": unsigned(2, 6, 3),
            "b": signed(3, 5),
            "as": np.float32(0.02),
            "bs": floats(5) ** 2,
            "az": np.uint8(12),
            "bz": signed(5),
            "bias": floats(5),
        },
        {},
    ),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes"), CASES, ids=[case[0] for case in CASES])
def test_results_are_those_of_onnx_runtime(
    operator: str, inputs: dict[str, Any], attributes: dict[str, Any]
) -> None:
    """Quantised results differ by one step at most, where halves fall otherwise."""
    constants = {name: value for name, value in inputs.items() if np.ndim(value) == 0}
    model = node_model(operator, inputs, domain=MICROSOFT_DOMAIN, opset=17, constants=constants)
    made = [onnx.helper.make_attribute(name, value) for name, value in attributes.items()]
    model.graph.node[0].attribute.extend(made)
    given = {name: value for name, value in inputs.items() if name not in constants}
    found, expected = run(model, given), reference_runtime.outputs(model, given)
    whole = expected[0].dtype.kind in "iu"
    assert_close(found, expected, rtol=0 if whole else 1e-5, atol=1 if whole else 1e-4)
    if whole:
        assert (found[0] != expected[0]).mean() < 0.1


def test_an_operand_that_is_quantised_on_the_way() -> None:
    """DynamicQuantizeMatMul is near the product of the numbers."""
    a, b = floats(2, 6, 8), signed(8, 5)
    inputs = {"a": a, "b": b, "bs": np.float32(0.02), "bz": np.int8(3), "bias": floats(5)}
    model = node_model("DynamicQuantizeMatMul", inputs, domain=MICROSOFT_DOMAIN, opset=17)
    exact = a @ ((b.astype("float32") - 3) * 0.02) + inputs["bias"]
    found = run(model, inputs)[0]
    assert np.abs(found - exact).max() < 0.1
    assert_close([found], reference_runtime.outputs(model, inputs), atol=1e-3)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("depth", [64, 40])
@pytest.mark.parametrize("with_zero", [False, True])
def test_weights_of_few_bits(bits: int, depth: int, with_zero: bool) -> None:
    """Blocks of 16, the last one short; zero points are packed as the weights are."""
    columns, block = 6, 16
    blocks = -(-depth // block)
    inputs: dict[str, Any] = {
        "a": floats(2, 3, depth),
        "b": unsigned(columns, blocks, block * bits // 8),
        "s": floats(columns, blocks),
    }
    if with_zero:
        inputs["z"] = unsigned(columns, -(-blocks * bits // 8))
    packed = inputs["b"].reshape(columns, -1)
    shifts = np.arange(0, 8, bits)
    whole = ((packed[:, :, None] >> shifts) & ((1 << bits) - 1)).reshape(columns, blocks, block)
    zero: Any = 1 << (bits - 1)
    if with_zero:
        rows = (inputs["z"][:, :, None] >> shifts) & ((1 << bits) - 1)
        zero = rows.reshape(columns, -1)[:, :blocks, None].astype("float64")
    weight = ((whole - zero) * inputs["s"][:, :, None]).reshape(columns, -1)[:, :depth]
    constants = {name: value for name, value in inputs.items() if name != "a"}
    model = node_model(
        "MatMulNBits",
        inputs,
        domain=MICROSOFT_DOMAIN,
        constants=constants,
        K=depth,
        N=columns,
        bits=bits,
        block_size=block,
    )
    found = run(model, {"a": inputs["a"]})[0]
    np.testing.assert_allclose(found, inputs["a"] @ weight.T, rtol=1e-3, atol=1e-2)


def test_groups_by_index_are_refused() -> None:
    """MatMulNBits with g_idx says that it is not supported."""
    inputs = {
        "a": floats(1, 16),
        "b": unsigned(2, 1, 8),
        "s": floats(2, 1),
        "z": None,
        "g": np.zeros(16, "int32"),
    }
    model = node_model("MatMulNBits", inputs, domain=MICROSOFT_DOMAIN, K=16, N=2, bits=4, block_size=16)
    with pytest.raises(ModelError, match="g_idx"):
        from_onnx(model)
