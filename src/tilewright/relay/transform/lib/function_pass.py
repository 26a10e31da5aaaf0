"""Passes that rewrite one graph-level function at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext, PassInfo, decorated_class, pass_info_maker
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room


class FunctionPass(Pass):
    """Base of passes over functions; a subclass gives ``transform_function``.

    Functions of other levels, and those that another code generator takes ("Compiler"), pass through untouched. Where
    ``typed`` is set, every expression has its ``checked_type`` when the pass sees it, and so has every expression that
    it leaves. The rewriting runs with room for deep recursion.
    """

    typed: ClassVar[bool] = True

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function | None:
        """The new function, or None to drop it from the module."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it transforms a function")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Rewrite every graph-level function of the module."""
        if self.typed:
            mod = infer_module(mod)

        def change(variable: GlobalVar, function: BaseFunc) -> BaseFunc | None:
            if not isinstance(function, Function) or function.attrs.get("Compiler"):
                return function
            made = self.transform_function(function, mod, ctx)
            if made is not None and not isinstance(made, Function):
                raise TilewrightError(
                    f"pass {self.info.name} gave {type(made).__name__} instead of a function for {variable.name_hint}"
                )
            return made

        with recursion_room():
            made = mod.map_functions(change)
        return infer_module(made) if self.typed else made


def run_on_function(given: Pass, func: Function) -> Function:
    """One function after a pass, without a module around it."""
    made = given(IRModule.from_expr(func))["main"]
    assert isinstance(made, Function)
    return made


FunctionTransform = Callable[[Function, IRModule, PassContext], Function | None]


class _MadeFunctionPass(FunctionPass):
    """A pass made from a Python function."""

    def __init__(self, function: FunctionTransform, info: PassInfo) -> None:
        self.function = function
        self.opt_level, self.name, self.required = info.opt_level, info.name, info.required

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function | None:
        return self.function(func, mod, ctx)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a pass from a function of (function, module, context), or from a class with ``transform_function``."""
    info_for = pass_info_maker("function_pass", opt_level, name, required)

    def create(given: Any) -> Any:
        info = info_for(given)
        if isinstance(given, type):
            return decorated_class(given, FunctionPass, "transform_function", info)
        if not callable(given):
            raise TypeError(f"function_pass is for functions and classes, not {type(given).__name__}")
        return _MadeFunctionPass(given, info)

    return create if pass_func is None else create(pass_func)
