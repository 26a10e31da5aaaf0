"""``build``: from schedules, functions and modules to code, as users call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.codegen import makes_host_code
from tilewright.compile.lower import lower, lower_module, with_symbols
from tilewright.compile.unit import compile_modules, link
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Var
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.support.errors import LoweringError, TargetError
from tilewright.target import Target
from tilewright.te.schedule import Schedule
from tilewright.te.tensor import Tensor
from tilewright.tir.function import PrimFunc


class OperatorModule(Module):
    """What ``build`` gives: the compiled module with the loops that it came from."""

    @classmethod
    def from_module(cls, mod: Module, **kwargs: Any) -> OperatorModule:
        """The module with these extras."""
        return cls(mod, **kwargs)

    def __init__(
        self,
        handle: Module,
        ir_module_by_target: Mapping[Target, IRModule] | None = None,
        name: str | None = None,
    ) -> None:
        self.__dict__.update(handle.__dict__)
        self.__class__ = type("OperatorModule", (OperatorModule, type(handle)), {})
        self.ir_module_by_target = dict(ir_module_by_target or {})
        self.name = name


def build(
    inputs: Any,
    args: Sequence[Tensor | Buffer | Var] | None = None,
    target: Any = None,
    target_host: Any = None,
    name: str = "default_function",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> Module:
    """Machine code. ``inputs`` is a schedule, a function, a module, or a dictionary from target to module.

    Functions that still have blocks or buffers of several dimensions are lowered first.
    """
    if isinstance(inputs, Schedule):
        inputs = lower(inputs, args, name, binds)
    elif isinstance(inputs, PrimFunc):
        inputs = lower(inputs, name=str(inputs.attrs.get("global_symbol", name)))
    elif isinstance(inputs, (list, tuple)):
        inputs = _merge(inputs)
    if isinstance(inputs, IRModule):
        chosen = Target.current() if target is None else target
        by_target = {_target("llvm" if chosen is None else chosen): lower_module(inputs)}
    elif isinstance(inputs, Mapping):
        by_target = {
            _target(one): lower_module(module) if isinstance(module, IRModule) else lower(module)
            for one, module in inputs.items()
        }
    else:
        raise LoweringError(f"a schedule, a function or a module can be built, not {type(inputs).__name__}")
    by_target = {one: with_symbols(module) for one, module in by_target.items()}
    if not any(module.functions for module in by_target.values()):
        raise TargetError("there is no function to build")
    host = host_of(list(by_target), target_host)
    built = link([compile_modules(by_target, host)], host)
    return OperatorModule.from_module(built, ir_module_by_target=by_target)


def _merge(modules: Sequence[IRModule]) -> IRModule:
    """One module with the functions of all; a name that stands twice is an error."""
    merged = IRModule()
    for module in modules:
        if not isinstance(module, IRModule):
            raise LoweringError(f"a list of modules can be built, this has a {type(module).__name__}")
        for variable, function in module.functions.items():
            if variable.name_hint in [one.name_hint for one in merged.functions]:
                raise LoweringError(f"two of the modules have a function {variable.name_hint}")
            merged[variable.name_hint] = function
    return merged


def _target(given: Any) -> Target:
    return given if isinstance(given, Target) else Target(given)


def host_of(targets: Sequence[Target], given: Any = None) -> Target:
    """The target of the code that launches the others: the one given, a target's own, the first that makes host code,
    or this machine."""
    if given is not None:
        return _target(given)
    for target in targets:
        if target.host is not None:
            return target.host
    return next((target for target in targets if makes_host_code(target)), Target("llvm"))
