"""DefuseOps: inlines primitive functions; the opposite of FuseOps."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.fresh_variables import with_fresh_variables
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Defuse(ExprMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        if not (isinstance(call.op, Function) and call.op.is_primitive):
            return call.map_children(self.visit)
        given: dict[Var, RelayExpr] = {}
        for parameter, argument in zip(call.op.params, call.args, strict=True):
            given[parameter] = self.visit(argument)
        return with_fresh_variables(call.op.body, given)  # type: ignore[no-any-return]


@dataclass
class DefuseOps(FunctionPass):
    """Take fused functions apart."""

    name = "DefuseOps"
    opt_level = 3
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Take apart the kernels of one function."""
        if func.is_primitive:
            return func
        made: Function = _Defuse().visit(func)
        return made
