"""Convolutions of single pixels of open images are computed on one row of pixels; values stay."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.ir.functor import post_order
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.runtime.vm import VirtualMachine


def image() -> relay.Var:
    """Images of 32 channels, of open number and size."""
    return relay.var("x", shape=(relay.Any(), 32, relay.Any(), relay.Any()))


def convolved(data: relay.Expr, outputs: int, taps: int = 1) -> relay.Expr:
    """A convolution with a bias and an activation."""
    generator = np.random.default_rng(outputs + taps)
    weight = relay.const(generator.uniform(-1, 1, (outputs, 32, taps, taps)).astype("float32"))
    bias = relay.const(generator.uniform(-1, 1, outputs).astype("float32"))
    window: dict[str, Any] = {"channels": outputs, "kernel_size": (taps, taps), "padding": taps // 2}
    return relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, weight, **window), bias))


def flattened(module: tvm.IRModule) -> int:
    """The number of kernels whose result goes back to rows and columns."""
    with tvm.transform.PassContext(opt_level=3):
        optimized, _ = relay.vm.VMCompiler().optimize(module, "llvm -mcpu=x86-64-v3")
    kernels = [
        expr.op
        for expr in post_order(optimized["main"].body)  # type: ignore[attr-defined]
        if isinstance(expr, Call) and isinstance(expr.op, Function)
    ]
    return sum(getattr(getattr(one.body, "op", None), "name", "") == "reshape_like" for one in kernels)


def check(module: tvm.IRModule) -> None:
    """Compiled, the program has the values that the interpreter gives, at any size."""
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    generator = np.random.default_rng(2)
    for batch, height, width in ((1, 7, 7), (2, 1, 5), (1, 13, 30)):
        data = generator.uniform(-1, 1, (batch, 32, height, width)).astype("float32")
        wanted = Interpreter(module).run(module["main"], [data])
        found = machine.invoke("main", tvm.nd.array(data)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_pixels_are_one_row() -> None:
    """A 1x1 convolution with what follows it elementwise, a residual included, has images of one column."""
    x = image()
    module = tvm.IRModule.from_expr(relay.Function([x], relay.add(convolved(x, 32), x)))
    assert flattened(module) == 1
    check(module)


def test_windows_keep_rows_and_columns() -> None:
    """A convolution that reads its neighbours is left."""
    x = image()
    module = tvm.IRModule.from_expr(relay.Function([x], convolved(x, 32, taps=3)))
    assert flattened(module) == 0


def test_operands_that_are_broadcast() -> None:
    """Another image may have one row, which is added to all."""
    x, row = image(), relay.var("row", shape=(relay.Any(), 32, relay.Any(), relay.Any()))
    module = tvm.IRModule.from_expr(relay.Function([x, row], relay.add(convolved(x, 32), row)))
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    generator = np.random.default_rng(3)
    for shape in ((1, 32, 1, 5), (2, 32, 4, 1), (2, 32, 4, 5)):
        given = [generator.uniform(-1, 1, one).astype("float32") for one in ((2, 32, 4, 5), shape)]
        wanted = Interpreter(module).run(module["main"], given)
        found = machine.invoke("main", *map(tvm.nd.array, given)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
