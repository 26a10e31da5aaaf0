"""Functions that programs look up by name, ``tvm.get_global_func("tvm.graph_executor.create")``: what other functions
do, under TVM's names and with TVM's arguments."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.device import Device
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.loading import enabled, load_module, system_lib
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func


def _devices(given: tuple[Any, ...]) -> list[Device]:
    """Devices, each as one value, or as its type and its number."""
    if given and isinstance(given[0], Device):
        return list(given)
    return [Device(int(kind), int(number)) for kind, number in zip(given[::2], given[1::2], strict=True)]


@register_func("tvm.graph_executor.create")
def create_graph_executor(graph_json: str, library: Module, *devices: Any) -> Module:
    """The executor of a graph, as a module."""
    return GraphExecutor(graph_json, library, _devices(devices))


@register_func("tvm.graph_executor_debug.create")
def create_debug_executor(graph_json: str, library: Module, *devices: Any) -> Module:
    """The same: every executor can run node by node."""
    return GraphExecutor(graph_json, library, _devices(devices))


@register_func("tvm.graph_executor_factory.create")
def create_graph_executor_factory(
    graph_json: str, library: Module, name: str, *params: str | NDArray
) -> Module:
    """The library with the model that ``relay.build`` would put into it; ``params`` are names and values in turn."""
    values = {str(key): value for key, value in zip(params[::2], params[1::2], strict=True)}
    arrays = {key: value for key, value in values.items() if isinstance(value, NDArray)}
    factory = GraphExecutorFactory(graph_json, arrays, name)
    kept = [one for one in library.imported_modules if not isinstance(one, GraphExecutorFactory)]
    return library.with_imports([*kept, factory])


@register_func("runtime.ModuleLoadFromFile")
def load_from_file(path: str, form: str = "") -> Module:
    """``tvm.runtime.load_module``."""
    return load_module(path, form)


register_func("runtime.SystemLib", system_lib)
register_func("runtime.RuntimeEnabled", enabled)
