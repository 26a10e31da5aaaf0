"""``relay.build``: from a module and its parameters to code that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.compile import UnitRequest, link
from tilewright.compile.dump import dump_passes
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay.backend.aot import compile_aot
from tilewright.relay.backend.executor import CompilingExecutor, Executor, ordered_arguments
from tilewright.relay.backend.executor_factory import (
    AOTExecutorFactoryModule,
    ExecutorFactoryModule,
    GraphExecutorFactoryModule,
)
from tilewright.relay.backend.external.code import compile_external, lower_external
from tilewright.relay.backend.function_info import FunctionInfo, function_metadata
from tilewright.relay.backend.graph_json import graph_json
from tilewright.relay.backend.interpreter import Interpreter
from tilewright.relay.backend.kernel_units import compile_kernels
from tilewright.relay.backend.linked_params import LOOKUP, linked_storages, links_params, lookup_function
from tilewright.relay.backend.memory_plan import plan_graph_memory
from tilewright.relay.backend.options import Executor as ExecutorOptions
from tilewright.relay.backend.options import Runtime as RuntimeOptions
from tilewright.relay.backend.preparation import (
    Params,
    as_constant,
    as_graph,
    as_module,
    bind_params_by_name,
    owned,
    prepared,
    with_main,
)
from tilewright.relay.backend.targets import BuildTargets, build_targets, devices_of, with_options
from tilewright.relay.backend.te_compiler import lower_primitive
from tilewright.relay.backend.utils import mangle_module_name
from tilewright.relay.backend.views import build_graph
from tilewright.relay.backend.vm import VMExecutor
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function, infer_module
from tilewright.relay.pipeline import fusing_passes
from tilewright.runtime.device import Device, cpu
from tilewright.runtime.graph_executor import GraphExecutor as RuntimeGraphExecutor
from tilewright.runtime.ndarray import NDArray
from tilewright.support.collection import with_rare_collection
from tilewright.support.errors import TargetError, TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target


def build_target_by_device_type_map(target: Any) -> dict[int, Target]:
    """The target of each device type."""
    return dict(build_targets(target).by_device)


def get_executor_from_target(target: Any, target_host: Any = None) -> str:
    """The executor that a target's options name, "graph" where they do not."""
    targets = build_targets(target, target_host)
    return str(targets.default.attrs.get("executor", "graph"))


def optimize(
    mod: IRModule | Function, target: Any = None, params: Params | None = None
) -> tuple[IRModule, Any]:
    """The module after the graph passes, not yet fused, and the parameters that are left."""
    return prepared(as_module(mod), build_targets(target if target is not None else "llvm"), params or {}), {}


class BuildModule:
    """The steps of a build, for those who want to look in between."""

    def __init__(self) -> None:
        self._factory: ExecutorFactoryModule | None = None

    def optimize(
        self, mod: IRModule | Function, target: Any = None, params: Params | None = None
    ) -> tuple[IRModule, Any]:
        """See ``relay.optimize``."""
        return optimize(mod, target, params)

    def build(
        self,
        mod: IRModule | Function,
        target: Any = None,
        target_host: Any = None,
        params: Params | None = None,
        executor: str = "graph",
        mod_name: str | None = None,
    ) -> tuple[Any, Any, Any]:
        """Graph, library and parameters."""
        self._factory = _build(
            mod, build_targets(target, target_host), params or {}, executor, mod_name or "default"
        )
        graph, library, values = self._factory
        return graph, library, values

    def _built(self) -> ExecutorFactoryModule:
        if self._factory is None:
            raise TilewrightError("nothing is built yet: call build first")
        return self._factory

    def get_graph_json(self) -> str:
        """The graph."""
        return str(self._built().get_executor_config())

    def get_module(self) -> Any:
        """The compiled code."""
        return self._built().get_lib()

    def get_function_metadata(self) -> Mapping[str, FunctionInfo]:
        """The sizes and programs of the model (``__tvm_main__``) and of each kernel, by name."""
        return self._built().function_metadata

    def get_params(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self._built().get_params())


def build(
    ir_mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    params: Params | None = None,
    mod_name: str = "default",
    *,
    executor: str | ExecutorOptions | None = None,
    runtime: RuntimeOptions | None = None,
    in_place: Mapping[str, str] | None = None,
) -> ExecutorFactoryModule:
    """Compile a model. ``params`` gives values to parameters of ``main`` by name: they become part of the model.

    ``target`` is a target, or a dictionary from devices to targets (``{"cpu": "llvm", "cuda": "cuda"}``): ``on_device``
    and ``device_copy`` say what runs where, and the rest runs on the CPU, or on ``relay.fallback_device_type``.

    The passes run under the current ``PassContext``. The executor is "graph", or "aot" where the target says
    ``-executor=aot``. ``relay.backend.Executor`` and ``Runtime`` give it together with options, which are otherwise
    those of the target: ``Executor("aot", {"interface-api": "c"})``. The target ``c`` gives source, which
    ``export_library`` compiles with the machine's C compiler.

    ``in_place`` names, for inputs, the output that takes the input's memory: a cache that a decoder appends to
    (``{"past": "present"}``), or other state. A run then writes only what changes, and the input has the output's value
    for the next run. An output that cannot be there is an error that says why.
    """
    targets = build_targets(target, target_host)
    for described in (executor, runtime):
        if isinstance(described, (ExecutorOptions, RuntimeOptions)):
            targets = with_options(targets, described.target_options())
    kind = str(executor or targets.default.attrs.get("executor", "graph"))
    return _build(ir_mod, targets, params or {}, kind, mod_name, in_place)


@with_rare_collection
def _build(
    given: IRModule | Function,
    targets: BuildTargets,
    params: Params,
    executor: str,
    mod_name: str,
    in_place: Mapping[str, str] | None = None,
) -> ExecutorFactoryModule:
    if executor not in ("graph", "aot"):
        raise TargetError(f"the executors are graph and aot, not {executor!r}; relay.vm.compile is the third")
    if executor == "aot" and in_place:
        raise TargetError(
            "a model compiled ahead of time has its inputs and outputs in memory of the caller, each in its own: use "
            "in_place with the graph executor or the virtual machine"
        )
    target = targets.default
    module = prepared(as_graph(as_module(given)), targets, params)
    with recursion_room(), target:
        with dump_passes("graph/2-fuse"):
            fused = Sequential(fusing_passes(target, views=True), name="relay.fuse")(module)
        fused = infer_module(fused)
        prefix = mangle_module_name(mod_name)
        graph = build_graph(fused["main"], prefix, devices_of(fused, targets))
        memory = plan_graph_memory(graph, in_place=in_place)
    constants = {node.name: node.value for node in graph.nodes if node.value is not None}
    values = dict(zip(constants, owned(list(constants.values()), params), strict=True))
    if executor == "aot":
        loops = [lower_primitive(function, target, name) for name, function in graph.kernels.items()]
        loops += lower_external(graph.external)
        model = compile_aot(graph, values, loops, target, mod_name)
        arenas = {targets.default_device: model.memory.workspace}
        known = function_metadata(fused["main"], graph, arenas, targets, loops)
        return AOTExecutorFactoryModule(fused, target, model, mod_name, values, known)
    kernels = {
        name: (function, targets.of(graph.kernel_devices[name])) for name, function in graph.kernels.items()
    }
    linked = linked_storages(graph, memory) if links_params(targets.host) else {}
    lookups = [_lookup_request(linked, values, targets.host)] if linked else []
    units, report = compile_kernels(kernels, targets.host, others=lookups)
    library = link(list(units.values()), targets.host)
    external = compile_external(graph.external, targets.host)
    for part in external.modules:
        library.import_module(part)
    values |= external.constants
    return GraphExecutorFactoryModule(
        fused,
        target,
        graph_json(graph, memory, linked.values()),
        library,
        mod_name,
        values,
        function_metadata(fused["main"], graph, memory.arenas, targets),
        memory=memory,
        cache_report=report,
        linked=linked,
    )


def _lookup_request(linked: Mapping[str, int], values: Mapping[str, NDArray], host: Target) -> UnitRequest:
    """The library's function that finds linked parameters, which are constants of it."""
    return UnitRequest(LOOKUP, host, lambda: lookup_function(linked, values, host))


class GraphExecutor(CompilingExecutor):
    """The "graph" executor: compiles, then runs."""

    def make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        """A Python function that runs the compiled one."""
        module = self.typed_module(expr)
        main = module["main"]
        module = with_main(module, _with_distinct_names(main))
        main = module["main"]
        factory = build(module, self.target)
        executor: RuntimeGraphExecutor = factory["default"](self.device)
        result = main.checked_type.ret_type

        def run(*args: Any, **kwargs: Any) -> Any:
            for parameter, value in zip(main.params, ordered_arguments(main, args, kwargs), strict=True):
                _set(executor, parameter.name_hint, value)
            executor.run()
            flat = [
                executor.get_output(position).copyto(self.device)
                for position in range(executor.get_num_outputs())
            ]
            return _unflatten(result, flat)

        return run


def _with_distinct_names(function: Function) -> Function:
    """Inputs are set by name: parameters that share one get numbers behind it."""
    names = [parameter.name_hint for parameter in function.params]
    if len(set(names)) == len(names):
        return function
    fresh = [
        Var(f"{name}_{position}" if names.count(name) > 1 else name, parameter.type_annotation)
        for position, (name, parameter) in enumerate(zip(names, function.params, strict=True))
    ]
    body = bind(function.body, dict(zip(function.params, fresh, strict=True)))
    return infer_function(Function(fresh, body, function.ret_type, function.type_params, function.attrs))


def _set(executor: RuntimeGraphExecutor, name: str, value: Any) -> None:
    if isinstance(value, (tuple, list)):
        for position, part in enumerate(value):
            _set(executor, f"{name}_{position}" if len(value) > 1 else name, part)
        return
    known = isinstance(value, (NDArray, np.ndarray))
    executor.set_input(name, value if known else as_constant(value).data.numpy())


def _unflatten(kind: Any, flat: list[NDArray]) -> Any:
    fields = getattr(kind, "fields", None)
    if fields is None:
        return flat.pop(0)
    return [_unflatten(field, flat) for field in fields]


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Device | None = None,
    target: Any = "llvm",
    params: Params | None = None,
) -> Executor:
    """An executor: "debug" interprets with NumPy, "graph" and "vm" compile. ``params`` are bound to ``main``."""
    module = mod if mod is not None else IRModule()
    if params:
        module = with_main(module, bind_params_by_name(module["main"], params))
    place = device if device is not None else cpu(0)
    if kind == "debug":
        return Interpreter(module, place, target)
    if kind == "graph":
        return GraphExecutor(module, place, target)
    if kind == "vm":
        return VMExecutor(module, place, target)
    raise TilewrightError(f"the executors are debug, graph and vm, not {kind!r}")


__all__ = [
    "BuildModule",
    "GraphExecutor",
    "PassContext",
    "bind_params_by_name",
    "build",
    "build_target_by_device_type_map",
    "create_executor",
    "get_executor_from_target",
    "optimize",
]
