"""Compiling for the virtual machine: the steps, parameters, the executor, export and loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.backend.vm.programs import executable, machine, module, plain, random, same

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend.vm import VMCompiler
from tilewright.runtime.container import ADT
from tilewright.runtime.vm import Executable, VirtualMachine
from tilewright.support.errors import LoweringError, TargetError, TilewrightError


def perceptron() -> relay.Function:
    """A dense layer of any number of rows."""
    x, w = relay.var("x", shape=(relay.Any(), 8)), relay.var("w", shape=(5, 8))
    return relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))


def expected(x: Any, w: Any) -> Any:
    """What it computes."""
    return np.maximum(x @ w.T, 0)


def test_parameters_become_constants() -> None:
    """By name; the function then has one parameter less."""
    x, w = random(3, 8), random(5, 8)
    made = relay.vm.compile(module(perceptron()), "llvm", params={"w": w})
    assert made.get_function_params("main") == ["x"] and made.get_function_arity("main") == 1
    same(VirtualMachine(made, tvm.cpu()).run(x).numpy(), expected(x, w), 1e-4)


def test_the_steps_of_a_compilation() -> None:
    """Optimise to look at, then lower, generate code, and take the result."""
    w = random(5, 8)
    compiler = VMCompiler()
    with pytest.raises(TilewrightError, match="call lower first"):
        compiler.codegen()
    compiler.set_params({"w": w})
    assert list(compiler.get_params()) == ["w"]
    optimised, left = compiler.optimize(module(perceptron()), "llvm")
    assert isinstance(optimised["main"].body, relay.Let) and left == {}
    compiler.lower(module(perceptron()), "llvm")
    with pytest.raises(TilewrightError, match="nothing is compiled yet"):
        compiler.get_exec()
    compiler.codegen()
    found = VirtualMachine(compiler.get_exec(), tvm.cpu()).run(random(2, 8))
    same(found.numpy(), expected(random(2, 8), w), 1e-4)


def test_the_executor() -> None:
    """``create_executor("vm")`` gives what the others give."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    function = relay.Function([x, y], relay.Tuple([x + y, relay.Tuple([x, relay.sum(y)])]))
    arguments = [random(2, 3), random(2, 3)]
    results = [relay.create_executor(kind).evaluate(function)(*arguments) for kind in ("debug", "vm")]
    assert isinstance(results[1], ADT) and isinstance(results[1][1], ADT)
    same(plain(results[1]), plain(results[0]))
    by_name = relay.create_executor("vm").evaluate(function)(y=arguments[1], x=arguments[0])
    same(plain(by_name), plain(results[0]))


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_export_and_load(suffix: str, tmp_path: Path) -> None:
    """Program, constants and kernels travel in one file."""
    x, w = random(4, 8), random(5, 8)
    path = str(tmp_path / f"model.{suffix}")
    relay.vm.compile(module(perceptron()), "llvm", params={"w": w}).export_library(path)
    loaded = tvm.runtime.load_module(path)
    same(VirtualMachine(loaded, tvm.cpu()).run(x).numpy(), expected(x, w), 1e-4)
    assert Executable(loaded).globals == ["main"]


def test_save_and_load(tmp_path: Path) -> None:
    """Bytes and library apart, in this process and from a file."""
    x, w = random(4, 8), random(5, 8)
    code, library = relay.vm.compile(module(perceptron()), "llvm", params={"w": w}).save()
    assert isinstance(code, bytearray)
    library.export_library(str(tmp_path / "kernels.so"))
    for kernels in (library, tvm.runtime.load_module(str(tmp_path / "kernels.so"))):
        loaded = Executable.load_exec(code, kernels)
        same(VirtualMachine(loaded, tvm.cpu()).run(x).numpy(), expected(x, w), 1e-4)


def test_a_program_without_kernels(tmp_path: Path) -> None:
    """Is run and exported like any other."""
    x = relay.var("x", shape=(2,))
    made = executable(module(relay.Function([x], relay.Tuple([x, x]))))
    made.export_library(str(tmp_path / "model.so"))
    found = VirtualMachine(tvm.runtime.load_module(str(tmp_path / "model.so")), tvm.cpu())
    assert len(found.run(random(2))) == 2


def test_functions_of_one_structure_share_a_kernel() -> None:
    """And shape functions are there only where a shape is computed."""
    x = relay.var("x", shape=(relay.Any(), 4))
    wide = relay.nn.dense(x, relay.const(random(6, 4)))
    body = relay.Tuple([relay.exp(wide), relay.exp(relay.nn.dense(relay.exp(x), relay.const(random(6, 4))))])
    made = executable(module(relay.Function([x], body)))
    names = made.primitive_ops
    assert sorted(name.startswith("shape_func") for name in names) == [False, False, True]
    y = relay.var("y", shape=(relay.Any(), 4))
    assert len(executable(module(relay.Function([y], relay.exp(y)))).primitive_ops) == 1


def test_only_what_main_reaches_is_compiled() -> None:
    """Functions of the module that nobody calls are left out."""
    made = tvm.IRModule()
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    made["unused"] = relay.Function([y], relay.sqrt(y))
    made["main"] = relay.Function([x], relay.exp(x))
    compiled = executable(made)
    assert compiled.globals == ["main"]
    assert not any("sqrt" in name for name in compiled.primitive_ops)


def test_other_targets() -> None:
    """Give the kernels of that target, and a machine needs the device; a target without code is refused."""
    x = relay.var("x", shape=(2,))
    compiled = relay.vm.compile(module(relay.Function([x], relay.exp(x))), "cuda")
    assert "expf" in compiled.lib.imported_modules[0].get_source("cu")
    with pytest.raises(
        TilewrightError, match="uses device 0 of the kind cuda, and the machine was not given it"
    ):
        VirtualMachine(compiled, tvm.cpu()).run(random(2))
    with pytest.raises(TargetError, match="no code generator for targets of kind 'rocm'"):
        relay.vm.compile(module(relay.Function([x], relay.exp(x))), "rocm")


def test_the_intermediate_values_of_a_chain_share_memory() -> None:
    """What is used for the last time is free for the next tensor: a long chain needs room for a few."""
    x = relay.var("x", shape=(relay.Any(), 64))
    body: relay.Expr = x
    for _ in range(12):
        body = relay.nn.softmax(relay.nn.dense(body, relay.const(random(64, 64))))
    found = machine(module(relay.Function([x], body)))
    rows = 256
    found.set_limits(most_bytes=4 * rows * 64 * 4)
    assert found.run(random(rows, 64)).shape == (rows, 64)


def test_a_function_for_another_code_generator() -> None:
    """Is refused with its name."""
    made = tvm.IRModule()
    name, x, y = relay.GlobalVar("outside"), relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    made[name] = relay.Function(
        [x], relay.exp(x), relay.TensorType((2,)), (), {"Compiler": "other", "Primitive": 1}
    )
    made["main"] = relay.Function([y], name(y))
    with pytest.raises((LoweringError, TilewrightError), match="outside|other"):
        relay.vm.compile(made, "llvm")
