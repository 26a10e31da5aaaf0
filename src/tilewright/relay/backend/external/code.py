"""Functions that other code generators compile.

A function with the attribute "Compiler" is compiled by the global function ``relay.ext.<compiler>``, or by the hooks of
the target kind of that name. That gives a runtime module, in which the function has the name of its attribute
"global_symbol" and takes inputs, then outputs, all tensors. Whatever goes wrong in a code generator is an error that
names it and the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.backend.external.hooks import compile_by_hooks, has_hooks, lower_by_hooks
from tilewright.relay.function import Function
from tilewright.relay.op.contrib.checks import tensors_of
from tilewright.runtime.external import ConstLoader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray, array
from tilewright.runtime.registry import get_global_func
from tilewright.support.errors import TargetError, TilewrightError
from tilewright.target import Target


@dataclass
class ExternalCode:
    """The modules of all external functions, and the constants that updaters declared, by name."""

    modules: list[Module] = field(default_factory=list)
    constants: dict[str, NDArray] = field(default_factory=dict)


def compile_external(functions: Mapping[str, Function], host: Target | None = None) -> ExternalCode:
    """The code of each function, by the code generator that it names."""
    made = ExternalCode()
    for name, function in functions.items():
        compiler = str(function.attrs["Compiler"])
        module = _generated(name, function, compiler, host if host is not None else Target("llvm"))
        constants = _constants(name, function, compiler)
        if constants and module.implements_function(f"__init_{name}", query_imports=True):
            loader = ConstLoader(name, constants)
            loader.import_module(module)
            module = loader
        made.modules.append(module)
        made.constants.update(constants)
    return made


def lower_external(functions: Mapping[str, Function]) -> list[IRModule]:
    """The loops of each function, for models that are compiled ahead of time: by the hooks of their target kinds."""
    made = []
    for name, function in functions.items():
        compiler = str(function.attrs["Compiler"])
        if not has_hooks(compiler):
            raise TargetError(
                f"{name} is for the code generator {compiler!r}, which makes a runtime module; compiled ahead of time, "
                "a model has no runtime, and needs a code generator that makes loops (relay_to_tir, as UMABackend has)"
            )
        lower = lambda given, name=name, compiler=compiler: lower_by_hooks(name, given, compiler)
        made.append(_guarded(lower, f"lowering {name}", compiler, function))
    return made


def _generated(name: str, function: Function, compiler: str, host: Target) -> Module:
    generate: Callable[[Function], Any] | None = get_global_func(f"relay.ext.{compiler}", allow_missing=True)
    if generate is None and has_hooks(compiler):
        generate = lambda given: compile_by_hooks(name, given, compiler, host)
    if generate is None:
        raise TilewrightError(
            f"{name} is for the code generator {compiler!r}, which is not registered: "
            f"tvm.register_func('relay.ext.{compiler}', function from a Relay function to a runtime module)",
            span=function.span,
        )
    module = _guarded(generate, f"compiling {name}", compiler, function)
    if not isinstance(module, Module):
        raise TilewrightError(
            f"the code generator {compiler!r} returned {_what(module)} for {name}, not a runtime module"
        )
    if not _guarded(
        lambda given: module.implements_function(name, query_imports=True),
        f"looking up {name} in its module",
        compiler,
        function,
    ):
        has = ", ".join(module.function_names)
        raise TilewrightError(
            f"the code that {compiler!r} generated has no function {name!r}{f'; it has {has}' if has else ''}"
        )
    _check_arity(module, name, function, compiler)
    return module


def _check_arity(module: Module, name: str, function: Function, compiler: str) -> None:
    """Refuse a Python function that cannot be called with the inputs and outputs. Machine code says nothing of its
    arguments, and may be for another machine."""
    if type(module)._find is Module._find:
        return
    found = _guarded(
        lambda given: module.get_function(name, query_imports=True), f"looking up {name}", compiler, function
    )
    runs = getattr(found, "wraps", lambda: None)()
    count = sum(len(tensors_of(one.checked_type)) for one in (*function.params, function.body))
    try:
        if runs is not None:
            inspect.signature(runs).bind(*[None] * count)
    except ValueError:
        return  # a callable that does not say what it takes
    except TypeError as error:
        raise TilewrightError(
            f"the function {name!r} that {compiler!r} generated cannot be called with its {count} inputs and outputs: "
            f"{error}"
        ) from error


def _constants(name: str, function: Function, compiler: str) -> dict[str, NDArray]:
    """What the code generator's updater declares; without one, constants are the module's own."""
    update = get_global_func(f"relay.ext.{compiler}.constant_updater", allow_missing=True)
    if update is None:
        return {}
    found = _guarded(
        lambda given: update(given, name), f"updating the constants of {name}", compiler, function
    )
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise TilewrightError(
            f"the constant updater of {compiler!r} returned {_what(found)} for {name}, not a dictionary from names "
            "to arrays"
        )
    made: dict[str, NDArray] = {}
    for key, value in found.items():
        take = partial(_as_array, value)
        made[key] = _guarded(take, f"taking the constant {key!r}", compiler, function)
    return made


def _as_array(value: Any, _: Function) -> NDArray:
    return value if isinstance(value, NDArray) else array(value)


def _guarded(run: Callable[[Function], Any], doing: str, compiler: str, function: Function) -> Any:
    """The result of somebody else's code; its exceptions become errors that name the code generator."""
    try:
        return run(function)
    except (Exception, SystemExit) as error:
        text = str(error) or "no message"
        raise TilewrightError(
            f"the code generator {compiler!r} failed while {doing}: {type(error).__name__}: {text}",
            span=function.span,
        ) from error


def _what(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
