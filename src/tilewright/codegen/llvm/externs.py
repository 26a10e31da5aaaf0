"""Calls of C functions and LLVM intrinsics by name."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.codegen.llvm.intrinsic_check import check_intrinsic
from tilewright.ir.expr import Call, IntImm, StringImm
from tilewright.support.dtype import DataType
from tilewright.support.errors import CodegenError

_VOID = frozenset({"llvm.prefetch", "llvm.assume", "llvm.donothing", "llvm.trap", "llvm.debugtrap"})


def _name(node: Call) -> str:
    first = node.args[0]
    if not isinstance(first, StringImm):
        raise CodegenError(f"{node.op.name} takes the function's name first", span=node.span)
    return first.value


def parameter_type(emitter: Emitter, dtype: DataType) -> str:
    """A parameter's type, with the extension that C's calling conventions want of small integers."""
    kind = emitter.types.register(dtype)
    if dtype.is_integral and dtype.bits < 32 and dtype.lanes == 1:
        return f"{kind} {'signext' if dtype.is_int else 'zeroext'}"
    return kind


def call_extern(emitter: Emitter, node: Call) -> str:
    """A C function: of libc, libm, this process, or another function of the module."""
    name = emitter.module.symbols.get(_name(node), _name(node))
    arguments = [
        (parameter_type(emitter, argument.dtype), emitter.visit(argument)) for argument in node.args[1:]
    ]
    attributes = "nounwind willreturn memory(none)" if node.op.name == "tir.call_pure_extern" else ""
    if name == "tilewright_workspace_alloc":
        return emitter.call_c(name, "noalias align 64 ptr", arguments)
    if name == "tilewright_any_release":
        emitter.call_c(name, "void", arguments)
        return "0"
    return emitter.call_c(name, emitter.types.register(node.dtype), arguments, attributes)


def call_intrinsic(emitter: Emitter, node: Call) -> str:
    """``call_llvm_intrin(name, num_signature, args...)``: the first ``num_signature`` arguments choose the overload."""
    name = _name(node)
    if not name.startswith("llvm."):
        raise CodegenError(f"{name!r} is not the name of an LLVM intrinsic", span=node.span)
    count = node.args[1]
    if not isinstance(count, IntImm):
        raise CodegenError(f"{name}: the number of signature arguments must be a constant", span=node.span)
    arguments = [(emitter.types.register(value.dtype), emitter.visit(value)) for value in node.args[2:]]
    result = "void" if node.dtype.is_handle and name in _VOID else emitter.types.register(node.dtype)
    check_intrinsic(emitter.machine, name, result, arguments, node.span)
    return emitter.call_llvm(name, result, arguments) or "0"


EXTERN_CALLS: dict[str, Callable[[Emitter, Call], str]] = {
    "tir.call_extern": call_extern,
    "tir.call_pure_extern": call_extern,
    "tir.call_llvm_intrin": call_intrinsic,
    "tir.call_llvm_pure_intrin": call_intrinsic,
}
