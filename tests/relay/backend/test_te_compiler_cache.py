"""The compiler of primitive functions as scripts ask for it: ``te_compiler.get()``."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend import compile_engine, te_compiler
from tilewright.relay.testing import run_infer_type
from tilewright.support.errors import LoweringError


def function(shape: tuple[int, ...]) -> relay.Function:
    """``x + x + x``."""
    x = relay.var("x", shape=shape)
    made = run_infer_type(relay.Function([x], relay.add(relay.add(x, x), x)))
    assert isinstance(made, relay.Function)
    return made


def test_functions_of_one_structure_are_lowered_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The same object for the same structure and target; another for another shape."""
    compiler = te_compiler.TECompiler()
    first = compiler.lower(function((10,)), "llvm")
    assert compiler.lower(function((10,)), "llvm").same_as(first)
    with tvm.target.Target("llvm"):
        assert compiler.lower(function((10,))).same_as(first)
    other = compiler.lower(function(()), "llvm")
    assert not other.same_as(first)
    assert [tensor.shape for tensor in first.inputs] == [(10,)] and len(first.outputs) == 1
    assert first.prim_fn_var.name_hint in [name.name_hint for name in first.funcs.get_global_vars()]
    assert [value.use_count for _, value in compiler.items()] == [3, 1]
    compiler.dump()
    assert "fused_add_add" in capsys.readouterr().out
    compiler.clear()
    assert compiler.items() == []


def test_compiled_functions_can_be_called() -> None:
    """Inputs, then outputs."""
    x, y = tvm.nd.array(np.arange(10, dtype="float32")), tvm.nd.empty((10,))
    te_compiler.get().jit(function((10,)), "llvm")(x, y)
    np.testing.assert_array_equal(y.numpy(), 3 * x.numpy())
    assert compile_engine.get() is te_compiler.get()
    assert te_compiler.CCacheKey(function((3,)), "llvm") == te_compiler.CCacheKey(function((3,)), "llvm")


def test_refusals() -> None:
    """A target is needed, and known dimensions."""
    with pytest.raises(LoweringError, match="a function and a target"):
        te_compiler.TECompiler().lower(function((10,)))
    with pytest.raises(LoweringError, match="relay.vm"):
        te_compiler.TECompiler().lower(function((relay.Any(),)), "llvm")  # type: ignore[arg-type]
