"""Kernels as Metal Shading Language text.

Each buffer is a parameter with an index; scalars follow as one structure in the buffer after the last.
"""

from __future__ import annotations

from tilewright.codegen.c.device import (
    VECTOR_LANGUAGE_TYPES,
    AddressSpacePrinter,
    device_functions,
    read_only_pointers,
    source_text,
    thread_extents,
)
from tilewright.codegen.c.names import C_KEYWORDS, Names
from tilewright.codegen.metal import intrin_rules
from tilewright.ir.module import IRModule
from tilewright.support.dtype import DataType
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_SPACES = {"global": "device ", "shared": "threadgroup ", "local": "thread "}
_WORDS = {
    "device",
    "thread",
    "threadgroup",
    "constant",
    "metal",
    "vertex",
    "fragment",
    "blockIdx",
    "threadIdx",
    "values",
}
_RESERVED = C_KEYWORDS | set(VECTOR_LANGUAGE_TYPES.values()) | _WORDS


class MetalPrinter(AddressSpacePrinter):
    """Prints one kernel."""

    language = "Metal"
    types = VECTOR_LANGUAGE_TYPES
    spaces = _SPACES
    helper_prefix = "static inline "
    thread_indices = {
        f"{kind}.{letter}": f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "xyz"
    }
    barriers = {
        "shared": "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "warp": "simdgroup_barrier(mem_flags::mem_threadgroup);",
    }

    def __init__(self, helpers: dict[str, str]) -> None:
        super().__init__()
        self.names = Names(_RESERVED)
        self.helpers = helpers

    def bits_helper(self, source: DataType, target: DataType) -> str:
        return f"as_type<{self.type_name(target)}>"


def _kernel(function: PrimFunc, name: str, helpers: dict[str, str]) -> str:
    printer = MetalPrinter(helpers)
    constant = read_only_pointers(function)
    pointers = [param for param in function.params if param.dtype.is_handle]
    numbers = [param for param in function.params if not param.dtype.is_handle]
    declarations = []
    for place, param in enumerate(pointers):
        word = "const " if param in constant else ""
        declarations.append(f"{word}{printer.declare_pointer(param)} [[buffer({place})]]")
    structure = ""
    if numbers:
        fields = "".join(
            f"  {printer.type_name(param.dtype)} {printer.names.define(param)};\n" for param in numbers
        )
        structure = f"struct {name}_values {{\n{fields}}};\n\n"
        for param in numbers:
            printer.names.alias(param, f"values.{printer.names.of(param)}")
        declarations.append(f"constant {name}_values& values [[buffer({len(pointers)})]]")
    declarations.append("uint3 blockIdx [[threadgroup_position_in_grid]]")
    declarations.append("uint3 threadIdx [[thread_position_in_threadgroup]]")
    threads = 1
    for tag, extent in thread_extents(function).items():
        if tag.startswith("threadIdx"):
            threads = 0 if extent is None else threads * extent
    bound = f"[[max_total_threads_per_threadgroup({threads})]]\n" if threads else ""
    printer.block(f"{structure}{bound}kernel void {name}({', '.join(declarations)})", function.body)
    return "\n".join(printer.lines) + "\n"


def generate_metal(module: IRModule) -> str:
    """The Metal source of a module's kernels, which must be in the form that the build passes give."""
    helpers: dict[str, str] = {}
    with recursion_room():
        bodies = [_kernel(function, name, helpers) for name, function in device_functions(module)]
    return source_text(_HEAD, helpers, bodies)


__all__ = ["MetalPrinter", "generate_metal", "intrin_rules"]
