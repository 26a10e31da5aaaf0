"""What is known to have one shape, and what may not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.analysis.program_shapes import ProgramShapes
from tilewright.relay.analysis.symbolic_types import SAME_SHAPES
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.runtime.vm import VirtualMachine


def image(name: str) -> relay.Var:
    """An image of open size."""
    return relay.var(name, shape=(1, 4, relay.Any(), relay.Any()))


def filtered(data: Any, stride: int = 1, taps: int = 3) -> Any:
    """A convolution that keeps the size, or halves it."""
    generator = np.random.default_rng(taps)
    weight = relay.const(generator.uniform(-1, 1, (4, 4, taps, taps)).astype("float32"))
    return relay.nn.conv2d(data, weight, strides=stride, padding=taps // 2)


def pairs() -> dict[str, tuple[Any, Any, bool]]:
    """Two expressions of x and y, and whether they certainly have one shape."""
    x, y = image("x"), image("y")
    half = relay.nn.max_pool2d(x, (2, 2), (2, 2))
    chosen = relay.If(relay.const(True), relay.nn.relu(x), relay.exp(x))
    return {
        "a convolution of the same size": (filtered(x), x, True),
        "two ways to halve": (filtered(x, 2), filtered(filtered(x), 2, taps=1), True),
        "sums": (relay.add(x, filtered(x)), relay.nn.relu(x), True),
        "other rounding": (filtered(x, 2), half, False),
        "two inputs": (x, y, False),
        "another rank": (x, relay.squeeze(x, [0]), False),
        "a branch": (chosen, x, False),
        "what may be repeated": (relay.add(x, y), x, False),
        "a sum and its first operand": (relay.add(x, relay.add(x, y)), relay.add(x, y), True),
        "a sum and its second operand again": (relay.add(relay.add(x, y), y), relay.add(x, y), True),
        # In a wrong program the two extents differ, and neither is one.
        "a sum behind its second operand": (relay.add(y, relay.add(x, y)), relay.add(x, y), False),
        "halved and doubled": (relay.nn.upsampling(half, 2.0, 2.0), x, False),
    }


@pytest.mark.parametrize("name", pairs())
def test_equal_shapes(name: str) -> None:
    """Only what holds for every size."""
    first, second, expected = pairs()[name]
    body = relay.Tuple([first, second])
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    main = relay.transform.InferType()(module)["main"]
    assert ProgramShapes(main).are_equal(*main.body.fields) is expected


def residual(first: Any, second: Any) -> tvm.IRModule:
    """The sum of two tensors."""
    body = relay.nn.relu(relay.add(first, second))
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))


def primitives(module: tvm.IRModule) -> list[Function]:
    """The fused functions of a module."""
    found: list[Function] = []

    def look(expr: Any) -> None:
        if isinstance(expr, Function) and expr.is_primitive:
            found.append(expr)

    typed = relay.transform.InferType()(module)
    with tvm.transform.PassContext(opt_level=3):
        post_order_visit(relay.transform.FuseOps()(typed)["main"], look)
    return found


def test_a_residual_joins_its_convolution() -> None:
    """Where both have one shape; the kernel of the halving convolution has the residual's sizes from its own."""
    x = image("x")
    module = residual(filtered(x, 2), filtered(x, 2, taps=1))
    fused = primitives(module)
    assert [bool(one.attrs.get(SAME_SHAPES)) for one in fused].count(True) == 1 and len(fused) == 2
    machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    for height, width in ((1, 1), (5, 8), (8, 3)):
        data = np.random.default_rng(height).uniform(-1, 1, (1, 4, height, width)).astype("float32")
        wanted = Interpreter(module).run(module["main"], [data])
        np.testing.assert_allclose(machine.invoke("main", tvm.nd.array(data)).numpy(), wanted, rtol=1e-4)


def test_what_may_be_repeated_does_not() -> None:
    """Two inputs of open sizes: one may have the size one."""
    module = residual(filtered(image("x")), image("y"))
    assert not any(one.attrs.get(SAME_SHAPES) for one in primitives(module))
    machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    generator = np.random.default_rng(0)
    for size in ((1, 1), (5, 1), (5, 6)):
        data = [generator.uniform(-1, 1, (1, 4, *shape)).astype("float32") for shape in ((5, 6), size)]
        wanted = Interpreter(module).run(module["main"], data)
        found = machine.invoke("main", *[tvm.nd.array(one) for one in data])
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)


def test_extents_do_not_grow_with_the_depth_of_a_model() -> None:
    """The extent of a sum of many tensors is a variable: an expression of all of their extents would take longer to
    compare from layer to layer."""
    inputs = [image(f"x{number}") for number in range(30)]
    total: Any = inputs[0]
    for one in inputs[1:]:
        total = relay.add(total, one)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(Function(inputs, total)))
    shapes = ProgramShapes(module["main"])
    *_, height, width = shapes.type_of(module["main"].body).shape  # type: ignore[attr-defined]
    assert isinstance(height, tvm.tir.Var) and isinstance(width, tvm.tir.Var)
