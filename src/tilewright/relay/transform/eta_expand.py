"""EtaExpand: turns constructors and global functions that are used as values into functions that call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.ir.type import Type, TypeCall
from tilewright.relay.expr import Call, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import TilewrightError


class _Expand(ExprMutator):
    def __init__(self, mod: IRModule, constructors: bool, functions: bool) -> None:
        super().__init__()
        self.mod = mod
        self.constructors = constructors
        self.functions = functions

    def visit_call(self, call: Call) -> RelayExpr:
        # What is called stays: only values are expanded.
        called = isinstance(call.op, (Constructor, GlobalVar))
        op = call.op if called else self.visit(call.op)
        args = tuple([self.visit(argument) for argument in call.args])
        if op is call.op and all(new is old for new, old in zip(args, call.args, strict=True)):
            return call
        return call.replace(op=op, args=args)

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        if not self.constructors:
            return con
        definition = self.mod[con.belong_to]
        params = [Var(f"eta_expand_param_{position}", typ) for position, typ in enumerate(con.inputs)]
        result: Type = con.belong_to
        if definition.type_vars:
            result = TypeCall(con.belong_to, definition.type_vars)
        return Function(params, Call(con, params), result, definition.type_vars)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        if not self.functions:
            return gvar
        function: Any = self.mod[gvar]
        if not isinstance(function, Function):
            raise TilewrightError(
                f"{gvar.name_hint} is used as a value, which only functions of the graph level can be"
            )
        params = [Var(parameter.name_hint, parameter.type_annotation) for parameter in function.params]
        body = Call(gvar, params, None, function.type_params)
        return Function(params, body, function.ret_type, function.type_params)


@dataclass
class EtaExpand(FunctionPass):
    """Expand constructors, functions of the module, or both, where they are values."""

    expand_constructor: bool = False
    expand_global_var: bool = False

    name = "EtaExpand"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Expand within one function."""
        made: Function = _Expand(mod, self.expand_constructor, self.expand_global_var).visit(func)
        return made
