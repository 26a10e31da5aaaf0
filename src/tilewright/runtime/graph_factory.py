"""A model for the graph executor as a module: its graph and its parameters, beside the kernels that import it.

``library["default"](device)`` makes an executor whose parameters are set. The factory travels inside an exported
library as data, and finds the kernels in the module that imports it.
"""

from __future__ import annotations

import json
import struct
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.params import load_param_dict, save_param_dict
from tilewright.runtime.session import Executor

TYPE_KEY = "GraphExecutorFactory"


class GraphExecutorFactory(Module):
    """Makes executors of one model, under the model's name."""

    def __init__(
        self,
        graph_json: str,
        params: Mapping[str, NDArray],
        name: str = "default",
        linked: Collection[str] = (),
    ) -> None:
        """``linked`` names the parameters that the kernels' library has as constants: executors read them there, and
        they are not saved once more with the graph."""
        functions = (name, "debug_create", "cuda_graph_create", "remove_params", "get_graph_json")
        super().__init__(TYPE_KEY, functions)
        self.graph_json = graph_json
        self.params = {name: value.aligned() for name, value in params.items()}
        self.name = name
        self.linked = tuple(linked)
        self._importer: weakref.ref[Module] | None = None

    def imported_by(self, module: Module) -> None:
        """The kernels are in the module that imports this one, or in what that imports.

        Its functions are held by C code, where the garbage collector sees no cycles, and keep what the module imports:
        a strong reference back would keep both alive forever.
        """
        self._importer = weakref.ref(module)

    def _library(self) -> Module:
        """The module with the kernels; an error without one."""
        if self._importer is None:
            raise failure("RuntimeError", f"the model {self.name} has no kernels: no module imports it")
        library = self._importer()
        if library is None:
            raise failure(
                "RuntimeError",
                f"the kernels of the model {self.name} are gone: keep the module that imports it, or an executor",
            )
        return library

    def create(self, *devices: Device) -> GraphExecutor:
        """A new executor, with its own memory and with the parameters set."""
        return self._create(self._library(), devices)

    def _create(self, library: Module, devices: Sequence[Device]) -> GraphExecutor:
        executor = GraphExecutor(self.graph_json, library, devices)
        for name, value in self._own_params().items():
            index = executor.get_input_index(name)
            if index < 0:
                continue
            if executor.input_device(index) == value.device:
                # Parameters are only read, so all executors of the model share them.
                executor.set_input_zero_copy(index, value)
            else:
                executor.set_input(index, value)
        executor.keep({**dict.fromkeys(self.linked), **self.params})
        return executor

    def _own_params(self) -> dict[str, NDArray]:
        """The parameters that the library does not have."""
        return {name: value for name, value in self.params.items() if name not in self.linked}

    def without_params(self) -> Module:
        """The library with this model, whose parameters are to be set, or are in the library."""
        library = self._library()
        bare = GraphExecutorFactory(self.graph_json, {}, self.name, self.linked)
        return library.with_imports([bare if one is self else one for one in library.imported_modules])

    def _executor_maker(self, name: str | None) -> Callable[[Device], Executor] | None:
        if name not in (None, self.name):
            return None
        library = self._library()  # kept by what is returned
        return lambda device: self._create(library, [device])

    def _find(self, name: str) -> PackedFunc | None:
        if name in (self.name, self.entry_name, "cuda_graph_create"):
            skipped = 0
        elif name == "debug_create":
            skipped = 1  # the model's name
        elif name == "remove_params":
            return convert_to_tvm_func(self.without_params)
        elif name == "get_graph_json":
            return convert_to_tvm_func(lambda: self.graph_json)
        else:
            return None
        if self._importer is None:
            return convert_to_tvm_func(lambda *args: self.create(*args[skipped:]))
        library = (
            self._library()
        )  # what the function keeps: it may outlive every other reference to the module

        def make(*args: Any) -> GraphExecutor:
            return self._create(library, args[skipped:])

        return convert_to_tvm_func(make)

    def save_to_bytes(self) -> bytes:
        """Name, graph and parameters."""
        said = {
            "name": self.name,
            "graph": self.graph_json,
            **({"linked": self.linked} if self.linked else {}),
        }
        head = json.dumps(said).encode()
        return struct.pack("<Q", len(head)) + head + save_param_dict(self._own_params())

    @staticmethod
    def load_from_bytes(type_key: str, content: bytes | memoryview) -> GraphExecutorFactory:
        """The reverse."""
        try:
            (size,) = struct.unpack_from("<Q", content)
            head = json.loads(bytes(content[8 : 8 + size]))
            return GraphExecutorFactory(
                str(head["graph"]),
                load_param_dict(content[8 + size :]),
                str(head["name"]),
                [str(name) for name in head.get("linked", ())],
            )
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise failure("ValueError", f"the model in the library is damaged: {error}") from error


register_module_loader(TYPE_KEY, GraphExecutorFactory.load_from_bytes, in_place=True)
