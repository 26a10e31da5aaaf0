"""Functions that register themselves when the program that they are linked into starts."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.contrib import graph_executor


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc to link")
def test_linked_functions_are_found_by_name(tmp_path: Path) -> None:
    """Code built with -system-lib and linked in is there in ``system_lib`` once it is loaded, and not before."""
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] * 3.0, name="B")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm -system-lib", name="triple_for_system_lib")
    module.save(str(tmp_path / "kernel.o"))
    runtime = Path(tvm.support.libinfo()["RUNTIME_LIBRARY"])
    library = tmp_path / "program.so"
    command = ["cc", "-shared", "-o", str(library), str(tmp_path / "kernel.o"), str(runtime), "-lm"]
    subprocess.run(command, check=True)
    with pytest.raises(AttributeError, match="triple_for_system_lib"):
        tvm.runtime.system_lib()["triple_for_system_lib"]
    ctypes.CDLL(str(library))
    values, result = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    tvm.runtime.system_lib()["triple_for_system_lib"](values, result)
    np.testing.assert_array_equal(result, values * 3)


def test_other_code_does_not_register() -> None:
    """Without the option there is no constructor."""
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] * 3.0, name="B")
    for option, expected in (("", False), (" -system-lib", True)):
        module = tvm.build(te.create_schedule(b.op), [a, b], f"llvm{option}", name="triple")
        assert ("llvm.global_ctors" in module.get_source("ll")) is expected


def test_a_model_whose_kernels_register_themselves_runs_in_this_process() -> None:
    """Kernels that are compiled apart are one library, with one constructor for all."""
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(8, 8))
    function = relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))
    weight = np.random.default_rng(0).random((8, 8), "float32")
    library = relay.build(tvm.IRModule.from_expr(function), "llvm -system-lib", params={"w": weight})
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    value = np.random.default_rng(1).random((4, 8), "float32")
    executor.set_input("x", value)
    executor.run()
    powers = np.exp(value @ weight.T)
    np.testing.assert_allclose(
        executor.get_output(0).numpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5
    )
