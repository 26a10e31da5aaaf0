"""Sets the target that each function is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.target.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class BindTarget(PrimFuncPass):
    """Set the attribute ``target`` of every function."""

    target: Target
    name = "tir.BindTarget"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_attr("target", self.target)
