"""The ahead-of-time executor: a graph compiled to one C function with caller-owned memory."""

from tilewright.relay.backend.aot.compile import compile_aot
from tilewright.relay.backend.aot.module import AOTModule, MemorySizes

__all__ = ["AOTModule", "MemorySizes", "compile_aot"]
