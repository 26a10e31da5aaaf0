"""The LLVM backend: machine code for CPUs, linked into this process or generated for any machine that LLVM supports."""

from tilewright.codegen.generator import register
from tilewright.codegen.llvm.build import LLVMGenerator

register(LLVMGenerator())
