"""Running a program on the virtual machine and on the reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import relay
from tilewright.runtime.vm import ADT, Executable, VirtualMachine


def module(function: relay.Function) -> tvm.IRModule:
    """A module whose ``main`` this is."""
    return tvm.IRModule.from_expr(function)


def machine(program: tvm.IRModule | relay.Function, level: int = 2) -> VirtualMachine:
    """A machine that runs a program."""
    with tvm.transform.PassContext(opt_level=level):
        return VirtualMachine(relay.vm.compile(program, "llvm"), tvm.cpu())


def executable(program: tvm.IRModule | relay.Function) -> Executable:
    """A compiled program."""
    return relay.vm.compile(program, "llvm")


def plain(value: Any) -> Any:
    """Arrays and tuples in place of what the machine gives."""
    if isinstance(value, (ADT, list, tuple)):
        return tuple(plain(part) for part in value)
    return value.numpy()


def check(function: relay.Function, *arguments: Any, rtol: float = 1e-5) -> None:
    """The machine gives what the interpreter gives."""
    wanted = plain(relay.create_executor("debug").evaluate(function)(*arguments))
    found = plain(machine(module(function)).run(*arguments))
    same(found, wanted, rtol)


def same(found: Any, wanted: Any, rtol: float = 1e-5) -> None:
    """Two values are the same, up to rounding."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, rtol)
        return
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-6)


def random(*shape: int) -> Any:
    """An array of floats, always the same for a shape."""
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype("float32")
