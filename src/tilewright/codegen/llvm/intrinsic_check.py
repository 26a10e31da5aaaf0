"""A guard before LLVM's intrinsics: one of another architecture ends the process in LLVM, so it is refused here."""

from __future__ import annotations

from tilewright.codegen.llvm.machine import Machine
from tilewright.support.errors import CodegenError
from tilewright.support.span import Span

_FAMILIES = {
    "x86": "x86",
    "aarch64": "aarch64",
    "arm": "arm",
    "riscv": "riscv",
    "wasm": "wasm",
    "hexagon": "hexagon",
    "nvvm": "nvptx",
    "amdgcn": "rocm",
    "r600": "rocm",
    "ppc": "ppc",
    "s390": "s390",
    "mips": "mips",
    "bpf": "bpf",
    "ve": "ve",
    "loongarch": "loongarch",
    "spv": "spirv",
    "xcore": "xcore",
    "dx": "directx",
}


def check_intrinsic(machine: Machine, name: str, span: Span | None) -> None:
    """Refuse an intrinsic that belongs to another family of processors, or needs a feature that the target lacks."""
    prefix = name.split(".")[1]
    family = _FAMILIES.get(prefix)
    if family is not None and family != machine.family:
        raise CodegenError(
            f"{name} is an instruction of {prefix}; the target {machine.triple} has no such", span=span
        )
