"""Inline assembly: PTX instructions that LLVM has no intrinsic for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tilewright.codegen.llvm.emitter import Emitter
from tilewright.ir.expr import Call, IntImm, PrimExpr, StringImm
from tilewright.support.errors import CodegenError

if TYPE_CHECKING:
    from tilewright.codegen.nvptx.emitter import KernelEmitter

SHARED: Final = "ptr addrspace(3)"
_CONSTRAINTS: Final = {"i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d"}


def as_kernel(emitter: Emitter) -> KernelEmitter:
    """The emitter of a kernel, which handlers of kernels are only called with."""
    return emitter  # type: ignore[return-value]


def assembly(
    emitter: Emitter,
    text: str,
    operands: Sequence[tuple[str, str]] = (),
    results: Sequence[str] = (),
    *,
    tied: Sequence[str] = (),
    touches_memory: bool = True,
    reads_memory: bool = False,
) -> list[str]:
    """Emit an instruction; ``operands`` are pairs of type and operand. ``results`` are the types of the results, which
    ``tied`` operands of the same number start with. In the text results come first (``$0``), then the operands.

    The threads of a warp execute it together. What touches memory or other state stays in its place; what only reads
    memory stays behind the writes before it.
    """
    constraints = [f"={_CONSTRAINTS[kind]}" for kind in results]
    constraints += [_CONSTRAINTS[kind] for kind, _ in operands]
    constraints += [str(place) for place in range(len(tied))]
    arguments = [f"{kind} {operand}" for kind, operand in operands]
    arguments += [f"{kind} {operand}" for kind, operand in zip(results, tied, strict=False)]
    kind = "void" if not results else results[0] if len(results) == 1 else f"{{ {', '.join(results)} }}"
    how, attributes = "asm ", "convergent nounwind memory(none)"
    if reads_memory:
        attributes = "nounwind memory(read)"
    elif touches_memory:
        constraints.append("~{memory}")
        how, attributes = "asm sideeffect ", "convergent nounwind"
    group = emitter.module.text.attributes(attributes)
    call = f'call {kind} {how}"{text}", "{",".join(constraints)}"({", ".join(arguments)}) {group}'
    if not results:
        emitter.function.effect(call)
        return []
    made = emitter.function.value(call)
    if len(results) == 1:
        return [made]
    return [emitter.function.value(f"extractvalue {kind} {made}, {place}") for place in range(len(results))]


def shared_address(emitter: Emitter, expr: PrimExpr) -> str:
    """An address in shared memory as the number that instructions take."""
    pointer = as_kernel(emitter).pointer_as(expr, SHARED)
    return emitter.function.value(f"ptrtoint {SHARED} {pointer} to i32")


def load_registers(emitter: Emitter, expr: PrimExpr, kind: str, count: int) -> list[str]:
    """Some registers of 32 bits from local memory."""
    space, pointer = emitter.pointer(expr)
    return [
        emitter.function.value(f"load {kind}, {space} {_at(emitter, space, pointer, place)}, align 4")
        for place in range(count)
    ]


def store_registers(emitter: Emitter, expr: PrimExpr, kind: str, values: Sequence[str]) -> None:
    """Write some registers of 32 bits to local memory."""
    space, pointer = emitter.pointer(expr)
    for place, value in enumerate(values):
        address = _at(emitter, space, pointer, place)
        emitter.function.effect(f"store {kind} {value}, {space} {address}, align 4")


def _at(emitter: Emitter, space: str, pointer: str, place: int) -> str:
    if place == 0:
        return pointer
    return emitter.function.value(f"getelementptr inbounds i32, {space} {pointer}, i32 {place}")


def places(first: int, count: int) -> str:
    """The names of some operands, in braces: a list of registers."""
    return "{" + ", ".join(f"${first + place}" for place in range(count)) + "}"


def number(node: Call, place: int) -> int:
    """An argument that must be a constant."""
    value = node.args[place]
    if not isinstance(value, IntImm):
        raise CodegenError(
            f"{node.op.name}: argument {place} must be a constant, not {value}", span=node.span
        )
    return value.value


def word(node: Call, place: int) -> str:
    """An argument that must be a string."""
    value = node.args[place]
    if not isinstance(value, StringImm):
        raise CodegenError(f"{node.op.name}: argument {place} must be a string, not {value}", span=node.span)
    return value.value


def int32(emitter: Emitter, expr: PrimExpr) -> tuple[str, str]:
    """An integer operand of 32 bits."""
    return "i32", emitter.index_as(expr, "i32")


def require(emitter: Emitter, node: Call, arch: int, specific: bool = False) -> None:
    """An error unless the target is at least of this generation, or exactly of it with its own instructions."""
    gpu = as_kernel(emitter).gpu
    if gpu.number < arch or (specific and not (gpu.number == arch and gpu.is_arch_specific)):
        name = f"sm_{arch}{'a' if specific else ' or later'}"
        raise CodegenError(f"{node.op.name} needs {name}, the target is {gpu.arch}", span=node.span)
