"""Makes the whole body of a function device code, for devices without thread indices."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.expr import StringImm
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import AttrStmt
from tilewright.tir.transform.function_pass import PrimFuncPass


@dataclass(frozen=True)
class DecorateDeviceScope(PrimFuncPass):
    """Put the body under the attribute ``device_scope``, at which ``SplitHostDevice`` cuts."""

    name = "tir.DecorateDeviceScope"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        return function.with_body(AttrStmt(StringImm("default"), "device_scope", 0, function.body))
