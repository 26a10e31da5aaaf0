"""``JSONRuntime``: the base of modules that run a part of a model from its JSON form.

A backend derives from it and writes two methods: ``prepare``, once before the first run, where weights are packed and
primitives are made, and ``compute``, for each run. Saving, loading and errors that name the backend are here.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from tilewright.runtime.external.json_graph import JSONGraph
from tilewright.runtime.failure import failure
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.params import load_param_dict, save_param_dict

_Runtime = TypeVar("_Runtime", bound="type[JSONRuntime]")


class JSONRuntime(Module):
    """One external function. It is called with its inputs, then its outputs, all tensors."""

    backend: ClassVar[str] = ""
    """The name of the code generator, which errors mention; the module's kind is ``<backend>_json``."""

    def __init__(self, graph: JSONGraph, constants: Mapping[str, NDArray] | None = None) -> None:
        if not self.backend:
            raise failure("TypeError", f"{type(self).__name__} must say its ``backend``")
        super().__init__(f"{self.backend}_json", (graph.symbol,))
        self.graph = graph
        self.constants = {name: value.aligned() for name, value in (constants or {}).items()}
        self._lock = threading.Lock()
        self._is_prepared = False

    # ---- what a backend writes ----

    def prepare(self) -> None:
        """Called once, before the first run."""

    def compute(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
        """Write the outputs. The arrays are valid during the call."""
        raise NotImplementedError(f"the runtime {type(self).__name__} does not say how it computes")

    # ---- what it gets ----

    def _call(self, *arguments: NDArray) -> None:
        given, made = len(self.graph.inputs), len(self.graph.outputs)
        if len(arguments) != given + made:
            raise failure(
                "TypeError",
                f"{self.graph.symbol} of {self.backend} takes {given} inputs and {made} outputs, "
                f"not {len(arguments)} tensors",
            )
        with self._lock:  # primitives and their memory are those of one run
            if not self._is_prepared:
                self.prepare()
                self._is_prepared = True
            self.compute(arguments[:given], arguments[given:])

    def _find(self, name: str) -> PackedFunc | None:
        # Not kept here: the function keeps this module, and C code that holds it hides the cycle.
        return convert_to_tvm_func(self._call) if name in (self.graph.symbol, self.entry_name) else None

    def get_source(self, fmt: str = "") -> str:
        """The JSON form."""
        if fmt not in ("", "json"):
            raise failure("ValueError", f"the {self.type_key} module has JSON, and no source in {fmt!r}")
        return self.graph.dumps()

    @property
    def format(self) -> str:
        return "json"

    def extra(self) -> dict[str, Any]:
        """What else is stored, as JSON; ``restore`` gets it back."""
        return {}

    def restore(self, extra: dict[str, Any]) -> None:
        """Take what ``extra`` gave when the module was saved."""

    def save_to_bytes(self) -> bytes:
        """The graph and the constants."""
        head = json.dumps({"graph": self.graph.dumps(), "extra": self.extra()}).encode()
        return struct.pack("<Q", len(head)) + head + save_param_dict(self.constants)

    @classmethod
    def load_from_bytes(cls, type_key: str, content: bytes | memoryview) -> JSONRuntime:
        """The reverse."""
        try:
            (size,) = struct.unpack_from("<Q", content)
            head = json.loads(bytes(content[8 : 8 + size]))
            graph = JSONGraph.loads(str(head["graph"]), f"the {type_key} module")
            made = cls(graph, load_param_dict(content[8 + size :]))
            made.restore(dict(head["extra"]))
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise failure("ValueError", f"the {type_key} module in the file is damaged: {error}") from error
        return made


def register_json_runtime(runtime: _Runtime) -> _Runtime:
    """A decorator: files that carry such a module can be loaded by this process."""
    register_module_loader(f"{runtime.backend}_json", runtime.load_from_bytes, in_place=True)
    return runtime
