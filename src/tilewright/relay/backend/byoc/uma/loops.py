"""External functions as loops: each operator gives its tensor expression, by the target's strategies."""

from __future__ import annotations

from tilewright.ir.function import BaseFunc
from tilewright.ir.module import IRModule
from tilewright.relay.backend.te_compiler import lower_primitive
from tilewright.relay.function import Function
from tilewright.target import Target


def lowered(module: IRModule, target: Target) -> IRModule:
    """The module in which functions for the target are loops of the same names."""
    made = IRModule()
    for variable, function in module.functions.items():
        result: BaseFunc = function
        if isinstance(function, Function) and function.attrs.get("Compiler") == target.kind.name:
            result = lower_primitive(function, target, variable.name_hint)[variable.name_hint]
        made[variable.name_hint] = result
    return made
