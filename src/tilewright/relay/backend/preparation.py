"""The first steps of every build: arguments normalized, parameters bound, graph passes run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compile.dump import dump_passes
from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.relay.backend.targets import BuildTargets
from tilewright.relay.expr import Constant, Var, const
from tilewright.relay.expr_functor import bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.pipeline import prepare_passes
from tilewright.relay.transform.drop_placements import DropPlacements
from tilewright.relay.transform.lib.straight_line import COMPILED_APART, NotStraightLine, straight_line
from tilewright.relay.transform.plan_devices import PlanDevices
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room

Params = Mapping[str, Any]
"""Values of parameters by name."""


def bind_params_by_name(func: Function, params: Params) -> Function:
    """The function with parameters of these names bound to constants. Names that it does not have are left out."""
    by_name: dict[str, list[Var]] = {}
    for parameter in func.params:
        by_name.setdefault(parameter.name_hint, []).append(parameter)
    values: dict[Var, RelayExpr] = {}
    for name, value in params.items():
        found = by_name.get(name, [])
        if len(found) > 1:
            raise TilewrightError(
                f"{len(found)} parameters are called {name!r}: give them different names to bind one"
            )
        for variable in found:
            values[variable] = as_constant(value)
    made = bind(func, values)
    assert isinstance(made, Function)
    return made


def as_constant(value: Any) -> Constant:
    """A value as a constant of the program."""
    if isinstance(value, Constant):
        return value
    return Constant(value) if isinstance(value, NDArray) else const(value)


def owned(constants: Sequence[NDArray], params: Params) -> list[NDArray]:
    """The constants of a built model. Those that share the memory of the caller's parameters are copied: later
    writes of the caller must not change the model."""
    foreign = [value.memory_range() for value in params.values() if isinstance(value, NDArray)]
    foreign.sort(key=lambda addresses: addresses.start)

    def is_foreign(value: NDArray) -> bool:
        start = value.memory_range().start
        place = bisect_right(foreign, start, key=lambda addresses: addresses.start) - 1
        return place >= 0 and start in foreign[place]

    return [value.copyto(value.device) if is_foreign(value) else value for value in constants]


def as_module(mod: IRModule | RelayExpr) -> IRModule:
    """A module; a single function becomes its ``main``."""
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, BaseFunc):
        return IRModule.from_expr(mod)
    raise TilewrightError(f"a module or a function can be built, not {type(mod).__name__}")


def with_main(mod: IRModule, function: Function) -> IRModule:
    """A copy of the module with another ``main``."""
    made = mod.copy()
    made["main"] = function
    return made


def as_graph(mod: IRModule) -> IRModule:
    """The module with calls of functions and lets in ``main`` resolved, as executors of graphs need it. A program that
    has branches, references or recursion stays as it is."""
    if "main" not in mod or not isinstance(mod["main"], Function):
        return mod
    main = mod["main"]
    try:
        with recursion_room():
            body = straight_line(main, mod, COMPILED_APART)
    except NotStraightLine:
        return mod
    return mod if body is main.body else with_main(mod, main.replace(body=body))


def prepared(mod: IRModule, targets: BuildTargets, params: Params) -> IRModule:
    """Bound parameters, and the passes that do not depend on the executor."""
    if "main" not in mod:
        raise TilewrightError("the module has no function main to build")
    main = mod["main"]
    if params and isinstance(main, Function):
        mod = mod.with_functions(
            {**mod.functions, mod.get_global_var("main"): bind_params_by_name(main, params)}
        )
    typed = infer_module(mod)
    if targets.is_single:
        with recursion_room(), targets.default, dump_passes("graph/1-prepare"):
            return Sequential(prepare_passes(targets.default), name="relay.prepare")(typed)
    # Devices are assigned before anything moves. Passes for one device do not run: there is no current target.
    placed = Sequential([PlanDevices(targets.default_device), DropPlacements()], name="relay.place")(typed)
    with recursion_room(), dump_passes("graph/1-prepare"):
        return Sequential(prepare_passes(None), name="relay.prepare")(infer_module(placed))
