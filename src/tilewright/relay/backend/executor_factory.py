"""The result of ``relay.build``: a model's code, graph and parameters, ready to run, to export or to look at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from tilewright.compile import CacheReport
from tilewright.ir.module import IRModule
from tilewright.relay.backend.memory_plan import GraphMemory
from tilewright.runtime.device import Device
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.session import Session
from tilewright.support import html
from tilewright.target import Target


class ExecutorFactoryModule:
    """Base of the results of ``relay.build``. Unpacks as (configuration, library, parameters), as older scripts
    expect."""

    ir_mod: IRModule
    target: Any
    libmod_name: str
    lib: Any
    params: Mapping[str, NDArray]
    function_metadata: Mapping[str, Any]

    def get_executor_config(self) -> Any:
        """What the executor needs beside code and parameters."""
        raise NotImplementedError

    def session(self, device: Device | None = None, output_names: Sequence[str] | None = None) -> Session:
        """The model, to be called with named inputs from any number of threads."""
        raise NotImplementedError

    def get_params(self) -> Mapping[str, NDArray]:
        """The parameters by name."""
        return self.params

    def get_lib(self) -> Any:
        """The compiled code."""
        return self.lib

    def export_library(
        self, file_name: str, fcompile: Callable[..., Any] | None = None, addons: Any = None, **kwargs: Any
    ) -> None:
        """Write the model into one file; see ``Module.export_library``."""
        self.lib.export_library(file_name, fcompile, addons, **kwargs)

    def _repr_html_(self) -> str:
        """What was compiled, for a notebook."""
        size = sum(int(value.numpy().nbytes) for value in self.params.values())
        memory = getattr(self, "memory", None)
        facts = [
            ("target", str(self.target)),
            ("parameters", f"{len(self.params)} tensors, {size:,} bytes"),
            ("intermediate tensors", "" if memory is None else f"{memory.arena_bytes:,} bytes"),
        ]
        program = html.program(repr(self.ir_mod), "the optimised graph")
        return html.fragment(type(self).__name__, html.facts(facts), program, subtitle=self.libmod_name)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.get_executor_config(), self.get_lib(), self.get_params()))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int):
            return tuple(self)[item]
        return self.get_lib()[item]


class GraphExecutorFactoryModule(ExecutorFactoryModule):
    """A model for the graph executor: ``factory["default"](device)`` makes an executor."""

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        graph_json_str: str,
        libmod: Module,
        libmod_name: str,
        params: Mapping[str, NDArray],
        function_metadata: Mapping[str, Any] | None = None,
        memory: GraphMemory | None = None,
        cache_report: CacheReport | None = None,
        linked: Collection[str] = (),
    ) -> None:
        self.ir_mod = ir_mod
        self.target = target
        self.graph_json_str = graph_json_str
        self.libmod_name = libmod_name
        self.function_metadata = dict(function_metadata or {})
        self.memory = memory
        self.cache_report = cache_report
        self.lib = libmod
        self.module = GraphExecutorFactory(graph_json_str, params, libmod_name, linked)
        self.params = self.module.params
        libmod.import_module(self.module)

    def session(self, device: Device | None = None, output_names: Sequence[str] | None = None) -> Session:
        """The model, to be called with named inputs from any number of threads; see ``Module.session``."""
        made: Session = self.lib.session(device, self.libmod_name, output_names)
        return made

    @property
    def graph_json(self) -> str:
        """The graph."""
        return self.graph_json_str

    def get_graph_json(self) -> str:
        """The graph."""
        return self.graph_json_str

    def get_executor_config(self) -> str:
        """The graph."""
        return self.graph_json_str


class AOTExecutorFactoryModule(ExecutorFactoryModule):
    """A model compiled ahead of time: one C function, and nothing that interprets a graph."""

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        libmod: Any,
        libmod_name: str,
        params: Mapping[str, NDArray],
        function_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.ir_mod = ir_mod
        self.target = target
        self.lib = libmod
        self.libmod_name = libmod_name
        self.params = dict(params)
        self.function_metadata = dict(function_metadata or {})

    def session(self, device: Device | None = None, output_names: Sequence[str] | None = None) -> Session:
        """The model, to be called with named inputs from any number of threads; see ``Module.session``."""
        made: Session = self.lib.session(device, output_names)
        return made

    def get_executor_config(self) -> None:
        """There is none."""
