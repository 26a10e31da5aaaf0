"""LLVM code: from loop programs to machine code for CPUs, in this process or for any machine that LLVM knows."""

from tilewright.codegen.generator import register
from tilewright.codegen.llvm.build import LLVMGenerator

register(LLVMGenerator())
