"""FakeQuantizationToInteger: the same numbers as on dequantised values, within one step of the output's scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module

GENERATOR = np.random.default_rng(7)


def constant(value: Any, dtype: str = "float32") -> relay.Constant:
    """A constant."""
    return relay.const(np.asarray(value, dtype))


def real(
    name: str, shape: tuple[int, ...], scale: float = 0.05, zero: int = 3, dtype: str = "int8"
) -> relay.Expr:
    """A quantised variable as real numbers."""
    data = relay.var(name, shape=shape, dtype=dtype)
    return qnn.op.dequantize(data, constant(scale), constant(zero, "int32"))


def weights(shape: tuple[int, ...], axis: int = 0, per_channel: bool = True) -> relay.Expr:
    """Weights as real numbers, with a scale per output channel."""
    data = constant(GENERATOR.integers(-128, 128, shape), "int8")
    scale = np.linspace(0.01, 0.02, shape[axis]) if per_channel else 0.01
    return qnn.op.dequantize(data, constant(scale), constant(0, "int32"), axis=axis)


def bias(count: int) -> relay.Expr:
    """A bias that is not quantised."""
    return constant(GENERATOR.normal(0, 1, count))


IMAGE = (1, 4, 6, 6)
BODIES: dict[str, Callable[[], relay.Expr]] = {
    "conv2d": lambda: relay.nn.relu(
        relay.nn.bias_add(
            relay.nn.conv2d(real("x", IMAGE), weights((5, 4, 3, 3)), padding=(1, 1), kernel_size=(3, 3)),
            bias(5),
        )
    ),
    "conv2d_transpose": lambda: relay.nn.conv2d_transpose(
        real("x", IMAGE), weights((4, 3, 2, 2), 1, False), kernel_size=(2, 2), channels=3
    ),
    "dense": lambda: relay.clip(
        relay.nn.bias_add(relay.nn.dense(real("x", (3, 8)), weights((4, 8))), bias(4)), -1.0, 2.0
    ),
    "rows of rows": lambda: relay.reshape(
        relay.nn.bias_add(
            relay.nn.dense(relay.reshape(real("x", (2, 3, 8)), (6, 8)), weights((4, 8))), bias(4)
        ),
        (2, 3, 4),
    ),
    "batch_matmul": lambda: relay.nn.batch_matmul(real("x", (2, 3, 4)), real("y", (2, 5, 4), 0.02, -7)),
    "moved": lambda: relay.transpose(relay.reshape(real("x", IMAGE), (4, 36))),
    "max pool": lambda: relay.nn.max_pool2d(real("x", IMAGE), (3, 3), padding=(1, 1)),
    "average pool": lambda: relay.nn.avg_pool2d(
        real("x", IMAGE), (3, 3), padding=(1, 1), count_include_pad=True
    ),
    "mean": lambda: relay.mean(real("x", IMAGE), axis=(2, 3)),
    "border": lambda: relay.nn.pad(real("x", (3, 4)), ((1, 0), (0, 2)), 1.0),
    "joined": lambda: relay.concatenate([real("x", (2, 3)), real("y", (2, 4), 0.1, -2)], 1),
    "piece": lambda: relay.split(real("x", (4, 3)), 2)[1],
    "sum": lambda: relay.add(real("x", (3, 4)), real("y", (1, 4), 0.03, 11)),
    "difference": lambda: relay.subtract(real("x", (3, 4)), constant([[0.5, 1, 2, -3]])),
    "product": lambda: relay.multiply(real("x", (3, 4)), real("y", (3, 4), 0.03, -4)),
    "product with a constant": lambda: relay.multiply(real("x", (3, 4)), constant([[0.5, 1, 2, -3]])),
    "maximum": lambda: relay.maximum(real("x", (3, 4)), real("y", (3, 4), 0.03, -4)),
    "residual": lambda: relay.nn.relu(
        relay.add(
            relay.nn.conv2d(real("x", IMAGE), weights((4, 4, 1, 1), 0, False), kernel_size=(1, 1)),
            real("y", IMAGE, 0.04, 5),
        )
    ),
}


def module_of(body: relay.Expr) -> tvm.IRModule:
    """The body, quantised."""
    out = qnn.op.quantize(body, constant(0.07), constant(-5, "int32"))
    return infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(out), out)))


def operators(module: tvm.IRModule) -> set[str]:
    """The names of all operators."""
    found: set[str] = set()
    relay.analysis.post_order_visit(
        module["main"], lambda expr: found.add(expr.name) if isinstance(expr, Op) else None
    )
    return found


def run(module: tvm.IRModule, executor: str, inputs: list[Any]) -> np.ndarray[Any, Any]:
    """What the module gives."""
    return relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()(*inputs).numpy()


def inputs_of(module: tvm.IRModule) -> list[np.ndarray[Any, Any]]:
    """Random integers for every parameter."""
    shapes = [[int(extent) for extent in one.checked_type.shape] for one in module["main"].params]
    return [np.random.default_rng(3).integers(-128, 128, shape).astype("int8") for shape in shapes]


@pytest.mark.parametrize("name", BODIES)
def test_integers_in_place_of_real_numbers(name: str) -> None:
    """No dequantised value is left, and results are within one step."""
    module = module_of(BODIES[name]())
    made = relay.transform.FakeQuantizationToInteger()(module)
    assert "qnn.dequantize" not in operators(made)
    assert "qnn.quantize" not in operators(made)
    inputs = inputs_of(module)
    expected, found = (run(one, "debug", inputs).astype(int) for one in (module, made))
    assert np.abs(found - expected).max() <= 1
    # Averages and constants are rounded twice: to a step of their own scale, then to one of the output's.
    assert (found == expected).mean() > 0.7
    assert expected.std() > 0


def test_compiled_integers() -> None:
    """Code for the integer form gives what the interpreter gives."""
    module = relay.transform.FakeQuantizationToInteger()(module_of(BODIES["residual"]()))
    inputs = inputs_of(module)
    np.testing.assert_array_equal(run(module, "graph", inputs), run(module, "debug", inputs))


LEFT: dict[str, Callable[[], relay.Expr]] = {
    "an operator without a rule": lambda: relay.erf(real("x", (3, 4))),
    "a value that is not quantised": lambda: relay.add(real("x", (3, 4)), relay.var("y", shape=(3, 4))),
    "nothing to compute": lambda: real("x", (3, 4)),
    "scales per channel that move": lambda: relay.reshape(weights((4, 8)), (32,)),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_cannot_be_integers_stays(name: str) -> None:
    """The program is unchanged."""
    module = module_of(LEFT[name]())
    assert tvm.ir.structural_equal(relay.transform.FakeQuantizationToInteger()(module), module)
