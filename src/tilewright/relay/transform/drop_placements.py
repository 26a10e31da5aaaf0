"""DropPlacements: remove the annotations that PlanDevices leaves, once every value has its device.

Copies between devices, and the devices of a function's parameters and result, say where everything else lies: a value
is on the device of what it is computed from and of what is computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Drop(ExprMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        if isinstance(call.op, Op) and call.op.name == "on_device":
            made: RelayExpr = self.visit(call.args[0])
            return made
        return call.map_children(self.visit)


@dataclass(frozen=True)
class DropPlacements(FunctionPass):
    """Each ``on_device`` becomes its argument."""

    name = "DropPlacements"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        made = _Drop().visit(func)
        assert isinstance(made, Function)
        return made
