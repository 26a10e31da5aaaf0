"""TVMScript: loop-level programs written as Python.

    from tilewright.script import tir as T

    @T.prim_func
    def add_one(a: T.handle, b: T.handle) -> None:
        n = T.var("int32")
        A = T.match_buffer(a, [n], dtype="float32")
        B = T.match_buffer(b, [n], dtype="float32")
        for i in T.serial(n):
            B[i] = A[i] + T.float32(1)

The body is read, never run. ``func.script()`` prints it back.
"""

from __future__ import annotations

from tilewright.script import ir, tir
from tilewright.script.module import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "tir"]
