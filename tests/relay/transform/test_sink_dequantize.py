"""SinkDequantize: what stands between dequantised tensors and where they are quantised again, on integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module

GENERATOR = np.random.default_rng(3)


def constant(value: Any, dtype: str = "float32") -> relay.Constant:
    """A constant."""
    return relay.const(np.asarray(value, dtype))


def real(
    name: str, shape: tuple[int, ...], scale: float = 0.05, zero: int = 3, dtype: str = "int8"
) -> relay.Expr:
    """A quantised variable as real numbers."""
    return qnn.op.dequantize(
        relay.var(name, shape=shape, dtype=dtype), constant(scale), constant(zero, "int32")
    )


def weights(shape: tuple[int, ...], axis: int = 0) -> relay.Expr:
    """Weights as real numbers, with a scale per output channel."""
    data = constant(GENERATOR.integers(-128, 128, shape), "int8")
    return qnn.op.dequantize(
        data, constant(np.linspace(0.01, 0.02, shape[axis])), constant(0, "int32"), axis=axis
    )


def quantized(data: relay.Expr, scale: float = 0.05, zero: int = 3, dtype: str = "int8") -> relay.Expr:
    """Halves to even, as ONNX has it."""
    return qnn.op.quantize(data, constant(scale), constant(zero, "int32"), out_dtype=dtype, rounding="TOEVEN")


def bias(count: int) -> relay.Expr:
    """A bias in the scale of the sums."""
    scale = (np.float32(0.05) * np.linspace(0.01, 0.02, count).astype("float32")).astype("float32")
    values = constant(GENERATOR.integers(-300, 300, count), "int32")
    return qnn.op.dequantize(values, constant(scale), constant(0, "int32"), axis=0)


IMAGE = (1, 4, 6, 6)
CONVOLUTION: dict[str, Any] = {"padding": (1, 1), "channels": 5, "kernel_size": (3, 3)}


def convolution() -> relay.Expr:
    """With a bias and an activation."""
    made = relay.nn.conv2d(real("x", IMAGE), weights((5, 4, 3, 3)), **CONVOLUTION)
    return quantized(relay.nn.relu(relay.nn.bias_add(made, bias(5))), 0.2, -128)


def clipped(most: float) -> relay.Expr:
    """A convolution whose result is between zero and a bound, with integers up to six."""
    made = relay.nn.conv2d(real("x", IMAGE), weights((5, 4, 3, 3)), **CONVOLUTION)
    return quantized(relay.clip(relay.nn.bias_add(made, bias(5)), 0.0, most), 6 / 255, -128)


def transposed() -> relay.Expr:
    """Windows that do not overlap."""
    made = relay.nn.conv2d_transpose(
        real("x", IMAGE), weights((4, 5, 2, 2), 1), strides=(2, 2), channels=5, kernel_size=(2, 2)
    )
    return quantized(relay.nn.relu(relay.nn.bias_add(made, bias(5))), 0.1)


INTEGERS: dict[str, tuple[Callable[[], relay.Expr], tuple[str, ...]]] = {
    "convolution": (convolution, ("qnn.conv2d", "nn.bias_add", "qnn.requantize")),
    "bounds that integers have as well": (
        lambda: clipped(6.0),
        ("qnn.conv2d", "nn.bias_add", "qnn.requantize"),
    ),
    "transposed convolution": (
        transposed,
        (
            *("transpose", "reshape", "qnn.conv2d", "nn.bias_add", "maximum", "qnn.requantize"),
            "nn.depth_to_space",
        ),
    ),
    "dense": (
        lambda: quantized(relay.nn.dense(real("x", (3, 8)), weights((4, 8))), 0.1),
        ("qnn.dense", "qnn.requantize"),
    ),
    "rows times a matrix, as a cube": (
        lambda: quantized(
            relay.reshape(relay.nn.matmul(real("x", (6, 8)), weights((8, 4), 1)), (2, 3, 4)), 0.1
        ),
        ("transpose", "qnn.dense", "reshape", "qnn.requantize"),
    ),
    "batches": (
        lambda: quantized(relay.nn.batch_matmul(real("x", (2, 3, 4)), real("y", (2, 5, 4))), 0.1),
        ("qnn.batch_matmul", "qnn.requantize"),
    ),
    "pool": (
        lambda: quantized(relay.nn.max_pool2d(real("x", IMAGE), (2, 2), strides=(2, 2))),
        ("nn.max_pool2d",),
    ),
    "border": (
        lambda: quantized(relay.nn.pad(real("x", IMAGE), ((0, 0), (0, 0), (1, 1), (0, 2)))),
        ("nn.pad",),
    ),
    "joined": (
        lambda: quantized(relay.concatenate([real("x", (2, 3)), real("y", (2, 4))], 1)),
        ("concatenate",),
    ),
    "rows of a table": (
        lambda: quantized(relay.take(real("x", (9, 4)), constant([1, 8], "int32"), axis=0)),
        ("take",),
    ),
    "turned": (
        lambda: quantized(relay.transpose(relay.nn.relu(real("x", (3, 4))))),
        ("maximum", "transpose"),
    ),
}


def sunk(body: relay.Expr) -> tuple[tvm.IRModule, tvm.IRModule]:
    """The program before and after."""
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    return module, infer_module(relay.transform.SinkDequantize()(module))


def operators(module: tvm.IRModule) -> list[str]:
    """The names of the operators that are called, arguments first."""
    found: list[str] = []
    relay.analysis.post_order_visit(
        module["main"].body, lambda expr: found.append(expr.op.name) if isinstance(expr, relay.Call) else None
    )
    return found


def run(module: tvm.IRModule, executor: str = "debug") -> np.ndarray[Any, Any]:
    """What the module gives for random integers."""
    random = np.random.default_rng(5)
    given = [
        random.integers(-128, 128, [int(extent) for extent in one.checked_type.shape]).astype("int8")
        for one in module["main"].params
    ]
    made: np.ndarray[Any, Any] = (
        relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()(*given).numpy()
    )
    return made


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    """Only these operators are left, and their integers are at most one step from those of real numbers; compiled code
    has the same."""
    make, expected = INTEGERS[name]
    before, after = sunk(make())
    assert operators(after) == list(expected)
    integers = run(after).astype(int)
    assert np.abs(integers - run(before).astype(int)).max() <= 1
    assert integers.std() > 0
    np.testing.assert_array_equal(run(after, "graph"), integers)


REAL: dict[str, Callable[[], relay.Expr]] = {
    "sum": lambda: quantized(relay.add(real("x", (3, 4)), real("y", (3, 4), 0.03))),
    "joined of two scales": lambda: quantized(
        relay.concatenate([real("x", (2, 3)), real("y", (2, 3), 0.1)], 1)
    ),
    "bounds within what integers reach": lambda: clipped(5.0),
    "another scale": lambda: quantized(real("x", (3, 4)), 0.1),
    "a border that is not zero": lambda: quantized(relay.nn.pad(real("x", (3, 4)), ((1, 1), (0, 0)), 0.3)),
    "a bias of another scale": lambda: quantized(
        relay.nn.bias_add(relay.nn.dense(real("x", (3, 8)), weights((4, 8))), real("b", (4,), 0.5, 0))
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_stay(name: str) -> None:
    """What integers would round differently stays."""
    before, after = sunk(REAL[name]())
    assert "qnn.dequantize" in operators(after)
    np.testing.assert_array_equal(run(after), run(before))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("rows", [(), (1,), (5,)])
def test_scales_that_only_the_program_knows(dtype: str, rows: tuple[int, ...]) -> None:
    """Dense layers multiply integers whatever the data stand for, one scale for all or one for each row."""
    random = np.random.default_rng(7)
    integers = constant(random.integers(-128, 128, (9, 16)), "int8")
    of_units = constant(np.linspace(0.01, 0.02, 9)), constant(random.integers(-9, 9, 9), "int32")
    weight = qnn.op.dequantize(integers, *of_units, axis=0)
    data = relay.var("x", shape=(5, 16), dtype=dtype)
    scale, zero = relay.var("s", shape=rows), relay.var("z", shape=rows, dtype="int32")
    made = relay.nn.dense(qnn.op.dequantize(data, scale, zero, axis=0), weight)
    function = relay.Function([data, scale, zero], made)
    before = infer_module(tvm.IRModule.from_expr(function))
    after = infer_module(relay.transform.SinkDequantize()(before))
    assert "qnn.dense" in operators(after) and "nn.dense" not in operators(after)
    ends = np.iinfo(dtype)
    given = [
        random.integers(ends.min, ends.max + 1, (5, 16)).astype(dtype),
        random.uniform(0.01, 0.1, rows).astype("float32"),
        random.integers(ends.min, ends.max + 1, rows).astype("int32"),
    ]
    wanted, found, compiled = (
        relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()(*given).numpy()
        for executor, module in (("debug", before), ("debug", after), ("graph", before))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(compiled, found, rtol=1e-6, atol=1e-6)


def test_scales_of_columns_stay_real() -> None:
    """Sums over an axis along which scales differ are sums of real numbers."""
    data = relay.var("x", shape=(5, 16), dtype="int8")
    scale = relay.var("s", shape=(16,))
    made = relay.nn.dense(qnn.op.dequantize(data, scale, constant(0, "int32"), axis=1), weights((9, 16)))
    module = infer_module(tvm.IRModule.from_expr(relay.Function([data, scale], made)))
    assert "nn.dense" in operators(relay.transform.SinkDequantize()(module))
