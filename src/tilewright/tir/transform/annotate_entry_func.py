"""Marks the entry function of a module."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class AnnotateEntryFunc(PrimFuncPass):
    """Set the attribute ``tir.is_entry_func`` of the only function of a module, or of the one called ``main``."""

    name = "tir.AnnotateEntryFunc"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        is_only = len(module.functions) == 1
        if is_only or function.attrs.get("global_symbol") == "main":
            return function.with_attr("tir.is_entry_func", True)
        return function
