"""What the device languages share: kernels with thread indices, memory scopes and barriers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from tilewright.codegen.c.statements import StatementPrinter
from tilewright.ir.expr import Call, FloatImm, IntImm, IterVar, Load, PrimExpr, StringImm, Var
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.support.errors import CodegenError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, AttrStmt, Store

VECTOR_LANGUAGE_TYPES: Final = {
    "bool": "bool",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
    "handle": "void*",
}
"""The names of types in OpenCL C and Metal, which both have vectors of them."""


class DevicePrinter(StatementPrinter):
    """Prints kernels; a language gives its words."""

    thread_indices: ClassVar[dict[str, str]] = {}
    """From ``threadIdx.x`` to the expression for it."""

    barriers: ClassVar[dict[str, str]] = {}
    """From a storage scope to the statement that waits for the threads that share it."""

    def visit_attr_stmt(self, node: AttrStmt) -> None:
        if node.attr_key == "thread_extent" and isinstance(node.node, IterVar):
            tag = node.node.thread_tag
            text = self.thread_indices.get(tag)
            if text is None:
                raise CodegenError(
                    f"{self.language} has no thread index {tag!r}; it has {', '.join(self.thread_indices)}"
                )
            self.names.alias(node.node.var, self.cast_text(text, node.node.var.dtype))
        super().visit_attr_stmt(node)

    def do_tvm_storage_sync(self, call: Call) -> None:
        scope = call.args[0].value if isinstance(call.args[0], StringImm) else ""
        text = self.barriers.get(scope)
        if text is None:
            raise CodegenError(f"{self.language} has no barrier for memory of scope {scope!r}")
        self.line(text)

    def failure(self, message: PrimExpr) -> None:
        raise CodegenError(
            f"{self.language} kernels cannot fail with a message; turn assertions off for device code"
        )


P = TypeVar("P", bound=DevicePrinter)


class AddressSpacePrinter(DevicePrinter):
    """Prints kernels in languages whose pointer types name an address space."""

    spaces: ClassVar[dict[str, str]] = {}
    """From a storage scope to the qualifier of its address space."""

    def visit_float_imm(self, node: FloatImm) -> str:
        if math.isfinite(node.value):
            return super().visit_float_imm(node)
        text = "NAN" if math.isnan(node.value) else "INFINITY" if node.value > 0 else "(-INFINITY)"
        return self.cast_text(text, node.dtype)

    def pointer_space(self, pointer: Var) -> str:
        space = self.spaces.get(pointer.storage_scope)
        if space is None:
            raise CodegenError(
                f"{self.language} has no memory of scope {pointer.storage_scope!r} ({pointer.name})"
            )
        return space

    def allocation(self, node: Allocate, name: str, kind: str, size: int) -> str:
        space = self.pointer_space(node.buffer_var)
        return f"{space if node.buffer_var.storage_scope == 'shared' else ''}{kind} {name}[{size}];"


def kernel_name(function: PrimFunc, fallback: str) -> str:
    """The symbol of a kernel."""
    return str(function.attrs.get("global_symbol", fallback))


def thread_extents(function: PrimFunc) -> dict[str, int | None]:
    """The extent of each thread index of a kernel, where it is a constant."""
    found: dict[str, int | None] = {}
    for stmt in post_order(function.body):
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            found[stmt.node.thread_tag] = stmt.value.value if isinstance(stmt.value, IntImm) else None
    return found


def device_functions(module: IRModule) -> list[tuple[str, PrimFunc]]:
    """The kernels of a module with their names."""
    made: list[tuple[str, PrimFunc]] = []
    for variable, function in module.functions.items():
        if not isinstance(function, PrimFunc):
            raise CodegenError(f"{variable.name_hint} is not a loop-level function")
        made.append((kernel_name(function, variable.name_hint), function))
    return made


def kernel_bodies(
    module: IRModule, make_printer: Callable[[], P], signature: Callable[[P, PrimFunc, str], str]
) -> list[str]:
    """The text of each kernel of a module, printed by a printer of its own."""
    bodies: list[str] = []
    with recursion_room():
        for name, function in device_functions(module):
            printer = make_printer()
            printer.block(signature(printer, function, name), function.body)
            bodies.append("\n".join(printer.lines) + "\n")
    return bodies


def source_text(head: str, helpers: Mapping[str, str], bodies: Sequence[str]) -> str:
    """A source file: its head, the helper functions that kernels use, and the kernels."""
    parts = [head, "".join(f"{text}\n" for text in helpers.values()), *bodies]
    return "\n".join(part for part in parts if part)


def device_function_names(module: IRModule) -> list[str]:
    """The names of a module's kernels."""
    return [name for name, _ in device_functions(module)]


def parameter_list(printer: DevicePrinter, function: PrimFunc) -> str:
    """The declarations of a kernel's parameters."""
    restrict = bool(function.attrs.get("tir.noalias", False))
    constant = read_only_pointers(function)
    declarations = []
    for param in function.params:
        if param.dtype.is_handle:
            word = "const " if param in constant else ""
            declarations.append(word + printer.declare_pointer(param, restrict))
        else:
            declarations.append(f"{printer.type_name(param.dtype)} {printer.names.define(param)}")
    return ", ".join(declarations)


def read_only_pointers(function: PrimFunc) -> set[Var]:
    """The pointer parameters through which a kernel reads and does nothing else."""
    candidates = {param for param in function.params if param.dtype.is_handle}
    for found in post_order(function.body):
        if isinstance(found, Store):
            candidates.discard(found.buffer_var)
        elif isinstance(found, Call):
            # A pointer that is passed on may be written through.
            for argument in found.args:
                passed = (
                    argument.buffer_var if isinstance(argument, Load) and _takes_address(found) else argument
                )
                if isinstance(passed, Var):
                    candidates.discard(passed)
    return candidates


def _takes_address(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name == "tir.address_of"
