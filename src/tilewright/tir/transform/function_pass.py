"""Passes that rewrite one loop-level function at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext, PassInfo, decorated_class, pass_info_maker
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc


class PrimFuncPass(Pass):
    """Base of passes over functions; a subclass gives ``transform_function``.

    Functions of other levels pass through untouched. The rewriting runs with room for deep recursion.
    """

    def transform_function(
        self, function: PrimFunc, module: IRModule, context: PassContext
    ) -> PrimFunc | None:
        """The new function, or None to drop it from the module."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it transforms a function")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Rewrite every PrimFunc of the module."""

        def change(variable: GlobalVar, function: BaseFunc) -> BaseFunc | None:
            if not isinstance(function, PrimFunc):
                return function
            made = self.transform_function(function, mod, ctx)
            if made is not None and not isinstance(made, PrimFunc):
                raise TilewrightError(
                    f"pass {self.info.name} gave {type(made).__name__} instead of a function for {variable.name_hint}"
                )
            return made

        with recursion_room():
            return mod.map_functions(change)


FunctionTransform = Callable[[PrimFunc, IRModule, PassContext], PrimFunc | None]


class _FunctionPass(PrimFuncPass):
    """A pass made from a Python function."""

    def __init__(self, function: FunctionTransform, info: PassInfo) -> None:
        self.function = function
        self.opt_level, self.name, self.required = info.opt_level, info.name, info.required

    def transform_function(
        self, function: PrimFunc, module: IRModule, context: PassContext
    ) -> PrimFunc | None:
        return self.function(function, module, context)


@overload
def prim_func_pass(
    pass_func: FunctionTransform, opt_level: int, name: str | None = ..., required: Sequence[str] | None = ...
) -> PrimFuncPass: ...
@overload
def prim_func_pass(
    pass_func: None = ...,
    opt_level: int | None = ...,
    name: str | None = ...,
    required: Sequence[str] | None = ...,
) -> Callable[[Any], Any]: ...
def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:
    """Make a pass from a function of (function, module, context), or from a class with ``transform_function``."""
    info_for = pass_info_maker("prim_func_pass", opt_level, name, required)

    def create(given: Any) -> Any:
        info = info_for(given)
        if isinstance(given, type):
            return decorated_class(given, PrimFuncPass, "transform_function", info)
        if not callable(given):
            raise TypeError(f"prim_func_pass is for functions and classes, not {type(given).__name__}")
        return _FunctionPass(given, info)

    return create if pass_func is None else create(pass_func)
