"""Compiling for the virtual machine: control flow, recursion, algebraic data types and unknown shapes."""

from tilewright.relay.backend.vm.compiler import VMCompiler, VMExecutor, compile

__all__ = ["VMCompiler", "VMExecutor", "compile"]
