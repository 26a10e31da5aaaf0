"""Tabulate: elementwise functions of one quantised tensor become lookups, of the same integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay import qnn
from tilewright.relay.infer import infer_module
from tilewright.relay.target.cpu.tabulate import Tabulate

CPU = "llvm -mcpu=icelake-server"


def constant(value: float, dtype: str = "float32") -> relay.Constant:
    """A number."""
    return relay.const(np.asarray(value, dtype))


def real(data: relay.Expr, scale: float = 0.05, zero: int = 100) -> relay.Expr:
    """Dequantised."""
    return qnn.op.dequantize(data, constant(scale), constant(zero, "int32"))


def quantized(data: relay.Expr, scale: float = 0.03, zero: int = 20) -> relay.Expr:
    """Quantised."""
    return qnn.op.quantize(
        data, constant(scale), constant(zero, "int32"), out_dtype="uint8", rounding="TOEVEN"
    )


X, Y = (relay.var(name, shape=(3, 50), dtype="uint8") for name in "xy")


def silu(data: relay.Expr) -> relay.Expr:
    """As a quantiser writes it, with the sigmoid quantised as well."""
    gate = real(quantized(relay.sigmoid(real(data)), 1 / 256, 0), 1 / 256, 0)
    return quantized(relay.multiply(real(data), gate))


def tabulated(body: relay.Expr, target: str = CPU) -> tuple[tvm.IRModule, tvm.IRModule]:
    """The program before and after."""
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    with tvm.target.Target(target):
        return module, infer_module(Tabulate()(module))


def run(module: tvm.IRModule, executor: str = "debug") -> np.ndarray[Any, Any]:
    """What the module gives for all bytes."""
    given = [np.arange(150, dtype="uint8").reshape(3, 50) + np.uint8(106 * place) for place in range(2)]
    with tvm.transform.PassContext(opt_level=3):
        made = relay.create_executor(executor, module, tvm.cpu(), "llvm").evaluate()
    result: np.ndarray[Any, Any] = made(*given[: len(module["main"].params)]).numpy()
    return result


def test_an_activation_is_one_lookup() -> None:
    """Two quantisations, a function and a product; compiled code looks up what the reference computes."""
    before, after = tabulated(silu(X))
    body = after["main"].body
    assert body.op.name == "nn.contrib_byte_lookup" and isinstance(body.args[0], relay.Var)
    expected = run(before)
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(run(after), expected)
    np.testing.assert_array_equal(run(after, "graph"), expected)


def test_a_function_of_two_tensors_stays() -> None:
    """Each of them has 256 values."""
    before, after = tabulated(quantized(relay.add(real(X), real(Y))))
    assert tvm.ir.structural_equal(before, after)
    before, after = tabulated(quantized(relay.add(real(silu(X)), real(Y))))
    assert after.astext().count("nn.contrib_byte_lookup") == 1
    np.testing.assert_array_equal(run(after), run(before))


def test_vectors_and_other_shapes_stay() -> None:
    """A scale per channel, and a tensor that grows, are no functions of an element."""
    for other in (np.ones((50,), "float32"), np.ones((2, 1, 1), "float32")):
        before, after = tabulated(quantized(relay.multiply(real(X), relay.const(other))))
        assert tvm.ir.structural_equal(before, after)


@pytest.mark.parametrize("cpu", ["skylake-avx512", "core-avx2", "nehalem"])
def test_with_shuffles_of_sixteen_bytes(cpu: str) -> None:
    """An activation is looked up; a rescaling, which takes fewer instructions than a lookup, is computed."""
    before, after = tabulated(silu(X), f"llvm -mcpu={cpu}")
    assert after["main"].body.op.name == "nn.contrib_byte_lookup"
    np.testing.assert_array_equal(run(after), run(before))
    before, after = tabulated(quantized(relay.nn.relu(real(X))), f"llvm -mcpu={cpu}")
    assert tvm.ir.structural_equal(before, after)


def test_with_lookups_in_registers() -> None:
    """AArch64 looks up in few instructions."""
    _, after = tabulated(silu(X), "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert after["main"].body.op.name == "nn.contrib_byte_lookup"


def test_without_shuffles_of_bytes() -> None:
    """Arithmetic in registers is as fast as loads from a table."""
    before, after = tabulated(silu(X), "llvm -mcpu=x86-64")
    assert tvm.ir.structural_equal(before, after)
