"""``Filter``: keeps the functions of a module that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class Filter(PrimFuncPass):
    """Keep the functions for which the condition holds."""

    fcond: Callable[[PrimFunc], bool]
    name = "tir.Filter"

    def transform_function(
        self, function: PrimFunc, module: IRModule, context: PassContext
    ) -> PrimFunc | None:
        return function if self.fcond(function) else None
