"""Kernels as OpenCL C text, version 1.2."""

from __future__ import annotations

from tilewright.codegen.c.device import (
    VECTOR_LANGUAGE_TYPES,
    AddressSpacePrinter,
    kernel_bodies,
    parameter_list,
    source_text,
    thread_extents,
)
from tilewright.codegen.c.names import C_KEYWORDS, Names
from tilewright.codegen.opencl import intrin_rules
from tilewright.ir.expr import Call
from tilewright.ir.module import IRModule
from tilewright.support.dtype import DataType
from tilewright.tir.function import PrimFunc

_TYPES = {**VECTOR_LANGUAGE_TYPES, "float64": "double"}

_EXTENSIONS = {"float16": "cl_khr_fp16", "float64": "cl_khr_fp64"}
_SPACES = {"global": "__global ", "shared": "__local ", "local": "__private "}
_RESERVED = C_KEYWORDS | set(_TYPES.values()) | {"global", "local", "private", "constant", "barrier"}


class OpenCLPrinter(AddressSpacePrinter):
    """Prints one kernel."""

    language = "OpenCL"
    types = _TYPES
    spaces = _SPACES
    helper_prefix = "static inline "
    thread_indices = {
        **{f"blockIdx.{letter}": f"get_group_id({place})" for place, letter in enumerate("xyz")},
        **{f"threadIdx.{letter}": f"get_local_id({place})" for place, letter in enumerate("xyz")},
    }
    barriers = {"shared": "barrier(CLK_LOCAL_MEM_FENCE);", "warp": "barrier(CLK_LOCAL_MEM_FENCE);"}

    def __init__(self, helpers: dict[str, str], extensions: set[str]) -> None:
        super().__init__()
        self.names = Names(_RESERVED)
        self.helpers = helpers
        self.extensions = extensions

    def type_name(self, dtype: DataType) -> str:
        if dtype in _EXTENSIONS:
            self.extensions.add(_EXTENSIONS[dtype])
        return super().type_name(dtype)

    def bits_helper(self, source: DataType, target: DataType) -> str:
        return f"as_{self.type_name(target)}"

    def call_atomic_add(self, node: Call) -> str:
        return f"atomic_add({', '.join(self.scalar(argument) for argument in node.args)})"


def _signature(printer: OpenCLPrinter, function: PrimFunc, name: str) -> str:
    extents = thread_extents(function)
    sizes = [extents.get(f"threadIdx.{letter}", 1) for letter in "xyz"]
    known = f"__attribute__((reqd_work_group_size({', '.join(map(str, sizes))}))) " if all(sizes) else ""
    return f"__kernel {known}void {name}({parameter_list(printer, function)})"


def generate_opencl(module: IRModule) -> str:
    """The OpenCL source of a module's kernels, which must be in the form that the build passes give."""
    helpers: dict[str, str] = {}
    extensions: set[str] = set()
    bodies = kernel_bodies(module, lambda: OpenCLPrinter(helpers, extensions), _signature)
    enabled = "".join(f"#pragma OPENCL EXTENSION {name} : enable\n" for name in sorted(extensions))
    return source_text(enabled, helpers, bodies)


__all__ = ["OpenCLPrinter", "generate_opencl", "intrin_rules"]
