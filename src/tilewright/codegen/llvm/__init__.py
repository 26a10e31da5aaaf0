"""The LLVM backend: machine code for CPUs, linked into this process or generated for any machine that LLVM supports."""

from tilewright.codegen.llvm.build import build_llvm

__all__ = ["build_llvm"]
