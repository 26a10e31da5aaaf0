"""LambdaLift: turns nested functions into functions of the module.

A function that captures variables becomes a function of these that returns the function, with the attribute "Closure";
it is replaced by a call with the variables. One that captures none is replaced by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.analysis import free_type_vars, free_vars
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.expr_functor import ExprMutator, let_block, substitute
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.support.recursion import recursion_room


class _Lift(ExprMutator):
    def __init__(self, fresh_name: Callable[[], GlobalVar]) -> None:
        super().__init__()
        self.fresh_name = fresh_name
        self.lifted: dict[GlobalVar, Function] = {}

    def run(self, function: Function) -> Function:
        """A function of the module, without functions in it."""
        if function.attrs.get("Closure") and isinstance(function.body, Function):
            inner = function.body
            body = self.visit(inner.body)
            return function if body is inner.body else function.replace(body=inner.replace(body=body))
        body = self.visit(function.body)
        return function if body is function.body else function.replace(body=body)

    def visit_function(self, fn: Function) -> RelayExpr:
        return fn if fn.is_primitive else self.lift(fn, None)

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            value: Any = current.value
            if isinstance(value, Function) and not value.is_primitive and value not in self.memo_map:
                made = self.memo_map[value] = self.lift(value, current.var)
            else:
                made = self.visit(value)
            chain.append((current, made))
            current = current.body
        return let_block(chain, self.visit(current))

    def lift(self, fn: Function, own: Var | None) -> RelayExpr:
        """Add a function to the module; returns its replacement. ``own`` is the name by which it calls
        itself."""
        name = self.fresh_name()
        captured = [variable for variable in free_vars(fn) if variable is not own]
        replacement: RelayExpr = Call(name, captured, span=fn.span) if captured else name
        if own is not None:
            self.memo_map[own] = replacement
        body = self.visit(fn.body)
        if own is not None:
            del self.memo_map[own]
        made = fn if body is fn.body else fn.replace(body=body)
        if captured:
            params = [Var(one.name_hint, getattr(one, "_checked_type_", None)) for one in captured]
            inner = substitute(made, dict(zip(captured, params, strict=True)))
            result = getattr(fn, "_checked_type_", None)
            made = Function(params, inner, result, free_type_vars(fn), {"Closure": 1}, span=fn.span)
        self.lifted[name] = made
        return replacement


@dataclass
class LambdaLift(Pass):
    """Lift the functions within the functions of the module."""

    name = "LambdaLift"
    opt_level = 1

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Lift, in functions in order."""
        mod = infer_module(mod)
        functions: dict[GlobalVar, BaseFunc] = {}
        taken = {name.name_hint for name in mod.functions}
        for name, function in mod.functions.items():
            functions[name] = function
            if isinstance(function, Function) and not function.attrs.get("Compiler"):

                def fresh_name(base: str = name.name_hint) -> GlobalVar:
                    number = next(n for n in range(len(taken) + 1) if f"{base}_lifted_{n}" not in taken)
                    taken.add(f"{base}_lifted_{number}")
                    return GlobalVar(f"{base}_lifted_{number}")

                lifter = _Lift(fresh_name)
                with recursion_room():
                    functions[name] = lifter.run(function)
                functions.update(lifter.lifted)
        same = all(functions[name] is mod.functions.get(name) for name in functions)
        return mod if same else mod.with_functions(functions)
