"""LLVM code: from loop programs to machine code for CPUs, in this process or for any machine that LLVM knows."""

from tilewright.codegen.llvm.build import build_llvm

__all__ = ["build_llvm"]
