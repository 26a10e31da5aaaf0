"""The ahead-of-time executor: a graph compiled to one C function with caller-owned memory."""

from tilewright.driver.aot.compile import compile_aot
from tilewright.driver.aot.module import AOTModule, MemorySizes

__all__ = ["AOTModule", "MemorySizes", "compile_aot"]
