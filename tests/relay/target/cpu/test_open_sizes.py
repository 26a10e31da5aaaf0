"""Convolutions of images whose number, height and width are known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay.backend.te_compiler import lower_primitive
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.target.cpu.shapes import typical_image
from tilewright.relay.target.cpu.typical_shapes import TYPICAL_INPUT, typical_shapes
from tilewright.runtime.vm import VirtualMachine

SIZES = [(1, 5, 7), (2, 14, 12), (1, 31, 1), (3, 6, 29), (1, 9, 15), (1, 1, 10)]
"""Widths that leave every number of columns over from a tile of six."""


def network(inputs: int, outputs: int, taps: int, strides: int, groups: int) -> tvm.IRModule:
    """A convolution with a bias and an activation, and a maximum after it."""
    generator = np.random.default_rng(3)
    x = relay.var("x", shape=(relay.Any(), inputs, relay.Any(), relay.Any()))
    weight = generator.uniform(-1, 1, (outputs, inputs // groups, taps, taps)).astype("float32")
    bias = generator.uniform(-1, 1, outputs).astype("float32")
    window: dict[str, Any] = {"channels": outputs, "kernel_size": (taps, taps), "padding": taps // 2}
    made = relay.nn.conv2d(x, relay.const(weight), strides=strides, groups=groups, **window)
    made = relay.nn.relu(relay.nn.bias_add(made, relay.const(bias)))
    pooled = relay.nn.max_pool2d(made, pool_size=(2, 2), strides=(2, 2), ceil_mode=True)
    return tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([made, pooled])))


def operators(module: tvm.IRModule) -> list[str]:
    """The names of the operators of a program after the passes of the highest level."""
    found: list[str] = []

    def look(expr: Any) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            found.append(expr.op.name)

    with tvm.transform.PassContext(opt_level=3):
        optimized, _ = relay.vm.VMCompiler().optimize(module, "llvm -mcpu=x86-64-v3")
    post_order_visit(optimized["main"], look)
    return found


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ((32, 48, 3, 1, 1), "nn.contrib_conv2d_winograd_without_weight_transform"),
        ((256, 64, 3, 1, 1), "nn.contrib_conv2d_winograd_without_weight_transform"),
        ((24, 40, 1, 1, 1), "nn.contrib_conv2d_NCHWc"),
        ((16, 32, 5, 2, 1), "nn.contrib_conv2d_NCHWc"),
        ((32, 32, 3, 2, 32), "nn.contrib_depthwise_conv2d_NCHWc"),
    ],
)
def test_kernels_are_those_of_constant_sizes(case: tuple[int, ...], expected: str) -> None:
    """Blocked channels and Winograd's algorithm; one program is right at every size."""
    module = network(*case)
    assert expected in operators(module)
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    generator = np.random.default_rng(4)
    for batch, height, width in SIZES:
        x = generator.uniform(-1, 1, (batch, case[0], height, width)).astype("float32")
        wanted = Interpreter(module).run(module["main"], [x])
        for found, right in zip(machine.invoke("main", tvm.nd.array(x)), wanted, strict=True):
            assert found.shape == right.shape
            # Winograd's error is relative to the largest results.
            np.testing.assert_allclose(
                found.numpy(), right, rtol=1e-4, atol=5e-5 * max(abs(right).max(), 1.0)
            )


def test_typical_sizes() -> None:
    """Open extents have one; open channels, no elements and other ranks have none."""
    assert typical_image((relay.Any(), 8, relay.Any(), 5)) == (1, 8, 28, 5)
    assert typical_image((1, relay.Any(), 5, 5)) is None
    assert typical_image((0, 8, 5, 5)) is None
    assert typical_image((8, 5, 5)) is None


def test_typical_shapes_follow_from_the_input() -> None:
    """A layer behind strides is small, whatever its type says; where no input is open, there is nothing to assume."""
    module = relay.transform.InferType()(network(16, 32, 3, 2, 1))
    function = module["main"]
    assert isinstance(function, relay.Function)
    shapes = typical_shapes(function)
    convolution = next(expr for expr in shapes if isinstance(expr, Call) and expr.op.name == "nn.conv2d")  # type: ignore[attr-defined]
    assert shapes[convolution] == (1, 32, TYPICAL_INPUT // 2, TYPICAL_INPUT // 2)
    assert shapes[function.params[0]] == (1, 16, TYPICAL_INPUT, TYPICAL_INPUT)
    closed = relay.var("x", shape=(1, 3, 8, 8))
    small = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.relu(closed)))
    assert typical_shapes(small["main"]) == {}  # type: ignore[arg-type]


def test_small_layers_of_large_images_are_not_winograd() -> None:
    """Behind five halvings an image has too few tiles for the transforms to pay."""
    x = relay.var("x", shape=(relay.Any(), 64, relay.Any(), relay.Any()))
    weight = relay.const(np.ones((64, 64, 3, 3), "float32"))
    window: dict[str, Any] = {"channels": 64, "kernel_size": (3, 3), "padding": 1}
    made: Any = x
    for _ in range(5):
        made = relay.nn.max_pool2d(made, pool_size=(2, 2), strides=(2, 2))
    small = relay.nn.conv2d(made, weight, **window)
    winograd = "nn.contrib_conv2d_winograd_without_weight_transform"
    assert winograd not in operators(tvm.IRModule.from_expr(relay.Function([x], small)))
    large = relay.nn.conv2d(x, weight, **window)
    assert winograd in operators(tvm.IRModule.from_expr(relay.Function([x], large)))


@pytest.mark.parametrize(
    ("taps", "strides", "padding", "more"), [(2, 2, 0, 0), (4, 2, 1, 0), (3, 2, 1, 1), (3, 1, 1, 0)]
)
def test_transposed_convolutions(taps: int, strides: int, padding: int, more: int) -> None:
    """Phase by phase in blocks, whatever the size is."""
    generator = np.random.default_rng(5)
    x = relay.var("x", shape=(relay.Any(), 16, relay.Any(), relay.Any()))
    weight = relay.const(generator.uniform(-1, 1, (16, 32, taps, taps)).astype("float32"))
    window: dict[str, Any] = {"channels": 32, "kernel_size": (taps, taps), "strides": (strides, strides)}
    made = relay.nn.conv2d_transpose(
        x, weight, padding=(padding, padding), output_padding=(more, more), **window
    )
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(made)))
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    for batch, height, width in SIZES:
        data = generator.uniform(-1, 1, (batch, 16, height, width)).astype("float32")
        wanted = Interpreter(module).run(module["main"], [data])
        found = machine.invoke("main", tvm.nd.array(data)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_dense_layers_of_sentences() -> None:
    """The weight is in blocks whatever the rank of the data is, and only one open axis is tiled."""
    generator = np.random.default_rng(6)
    x = relay.var("x", shape=(relay.Any(), relay.Any(), 24))
    weight = relay.const(generator.uniform(-1, 1, (40, 24)).astype("float32"))
    bias = relay.const(generator.uniform(-1, 1, 40).astype("float32"))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(relay.nn.dense(x, weight) + bias)))
    assert "nn.contrib_dense_pack" in operators(module)
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    for rows in ((1, 1), (2, 7), (1, 13), (5, 6)):
        data = generator.uniform(-1, 1, (*rows, 24)).astype("float32")
        wanted = Interpreter(module).run(module["main"], [data])
        found = machine.invoke("main", tvm.nd.array(data)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_norm_of_open_sizes_is_not_sliced() -> None:
    """What is broadcast to open sizes is computed before the loop that reads it: which slice an iteration needs depends
    on whether a size is one."""
    sizes = [relay.Any() for _ in range(3)]
    data = relay.var("data", relay.TensorType([*sizes, 96], "float32"))
    mean, variance = (
        relay.var(name, relay.TensorType([*sizes, 1], "float32")) for name in ("mean", "variance")
    )
    deviation = relay.sqrt(relay.add(variance, relay.const(1e-5)))
    body = relay.divide(relay.subtract(data, mean), deviation)
    function = relay.Function([data, mean, variance], body).with_attr("Primitive", 1)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    text = str(
        lower_primitive(module["main"], tvm.target.Target("llvm -mcpu=skylake-avx512"), "norm")["norm"]
    )
    assert text.index("T.allocate") < text.index("T.parallel")
