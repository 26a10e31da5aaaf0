"""Passes over loop programs: one file each."""

from tilewright.tir.transform.function_pass import PrimFuncPass, prim_func_pass

__all__ = [
    "PrimFuncPass",
    "prim_func_pass",
]
