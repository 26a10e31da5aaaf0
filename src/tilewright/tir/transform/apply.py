"""``Apply``: makes a pass from a function over functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class Apply(PrimFuncPass):
    """Replace every function by what ``ftransform`` makes of it."""

    ftransform: Callable[[PrimFunc], PrimFunc]
    name = "tir.Apply"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return self.ftransform(function)
