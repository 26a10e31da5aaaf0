"""Inline: replaces calls of functions with the attribute "Inline" by the functions' bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.analysis import CallGraph
from tilewright.relay.analysis.blocks import Blocks
from tilewright.relay.analysis.feature import is_atomic
from tilewright.relay.analysis.purity import Effects
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.fresh_variables import with_fresh_variables
from tilewright.support.recursion import recursion_room


class _Inliner(ExprMutator):
    def __init__(self, bodies: dict[str, Function], effects: Effects) -> None:
        super().__init__()
        self.bodies = bodies
        self.effects = effects

    def visit_call(self, call: Call) -> RelayExpr:
        callee = self.bodies.get(call.op.name_hint) if isinstance(call.op, GlobalVar) else None
        if callee is None:
            return call.map_children(self.visit)
        arguments = [self.visit(argument) for argument in call.args]
        if callee.attrs.get("Compiler"):
            # Another code generator takes the function: it stays one, at the place of the call.
            return Call(with_fresh_variables(callee), arguments, span=call.span)
        return self.applied(callee, call, arguments)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        callee = self.bodies.get(gvar.name_hint)
        if callee is None:
            return gvar
        value: RelayExpr = with_fresh_variables(callee)
        return value

    def applied(self, callee: Function, call: Call, arguments: list[Any]) -> RelayExpr:
        """The body of a function with arguments for its parameters. An argument with an effect keeps its place before
        the body; where the body has branches or functions, so does one that computes something, to be computed once."""
        simple = not Blocks(callee.body).inner
        given: dict[Var, RelayExpr] = {}
        bound: list[tuple[Var, RelayExpr]] = []
        for parameter, old, argument in zip(callee.params, call.args, arguments, strict=True):
            if is_atomic(argument) or (simple and not self.effects.of[old]):
                given[parameter] = argument
            else:
                variable = Var(parameter.name_hint, parameter.type_annotation)
                given[parameter] = variable
                bound.append((variable, argument))
        body: RelayExpr = with_fresh_variables(callee.body, given)
        for variable, argument in reversed(bound):
            body = Let(variable, argument, body)
        return body


@dataclass
class Inline(Pass):
    """Inline what is marked. A marked function then leaves the module, unless it calls itself, is main, or was called
    by none."""

    name = "Inline"
    opt_level = 1

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Functions that are called come before those that call them."""
        graph = CallGraph(mod)
        made: dict[GlobalVar, BaseFunc] = {}
        bodies: dict[str, Function] = {}
        for name in graph.topological_order():
            function = mod.functions[name]
            if isinstance(function, Function):
                with recursion_room():
                    body = _Inliner(bodies, Effects(function.body, mod)).visit(function.body)
                function = function if body is function.body else function.replace(body=body)
                if function.attrs.get("Inline") and not graph.is_recursive(name):
                    bodies[name.name_hint] = function
            made[name] = function

        def result(name: GlobalVar, function: BaseFunc) -> BaseFunc | None:
            gone = name.name_hint in bodies and name.name_hint != "main" and graph.ref_count(name) > 0
            return None if gone else made[name]

        return mod.map_functions(result)
