"""A model that was compiled ahead of time, inside the library of its function: what the function takes and returns.

The description travels in an exported library as JSON, which sessions in C read too (``csrc/session_function.c``).
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.input_values import as_input
from tilewright.runtime.loading import register_module_loader
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray, empty
from tilewright.runtime.packed_func import PackedFunc
from tilewright.runtime.session import Executor

TYPE_KEY = "AOTModel"


@dataclass(frozen=True)
class TensorDescription:
    """An input or an output."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class AOTModel(Module):
    """The description of a function that is a whole model: inputs, outputs, then the workspace, if it has one."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[TensorDescription],
        outputs: Sequence[TensorDescription],
        workspace_bytes: int,
        parameter_tensors: int,
        parameter_bytes: int,
    ) -> None:
        super().__init__(TYPE_KEY)
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.workspace_bytes = workspace_bytes
        self.parameter_tensors = parameter_tensors
        """The number of constants in the code, and their size in bytes."""
        self.parameter_bytes = parameter_bytes
        self._importer: weakref.ref[Module] | None = None

    def imported_by(self, module: Module) -> None:
        """The function is in the module that imports this one; see ``GraphExecutorFactory.imported_by``."""
        self._importer = weakref.ref(module)

    def _find(self, name: str) -> PackedFunc | None:
        return None

    def _executor_maker(self, name: str | None) -> Callable[[Device], Executor] | None:
        library = None if self._importer is None else self._importer()
        if name not in (None, self.name) or library is None:
            return None
        return lambda device: FunctionExecutor(self, library[self.name])

    def save_to_bytes(self) -> bytes:
        """The description."""
        return json.dumps(
            {
                "name": self.name,
                "inputs": [asdict(one) for one in self.inputs],
                "outputs": [asdict(one) for one in self.outputs],
                "workspace_bytes": self.workspace_bytes,
                "parameter_tensors": self.parameter_tensors,
                "parameter_bytes": self.parameter_bytes,
            }
        ).encode()

    @staticmethod
    def load_from_bytes(type_key: str, content: bytes) -> AOTModel:
        """The reverse."""
        try:
            stored = json.loads(content)
            inputs, outputs = (
                [
                    TensorDescription(str(one["name"]), str(one["dtype"]), tuple(map(int, one["shape"])))
                    for one in stored[kind]
                ]
                for kind in ("inputs", "outputs")
            )
            sizes = [
                int(stored[name]) for name in ("workspace_bytes", "parameter_tensors", "parameter_bytes")
            ]
            return AOTModel(str(stored["name"]), inputs, outputs, *sizes)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise failure("ValueError", f"the model in the library is damaged: {error!r}") from error


register_module_loader(TYPE_KEY, AOTModel.load_from_bytes)


class FunctionExecutor:
    """Calls the function with memory of its own."""

    def __init__(self, model: AOTModel, function: PackedFunc) -> None:
        self._function = function
        self._names = [one.name for one in model.inputs]
        self._inputs = [empty(one.shape, one.dtype) for one in model.inputs]
        self._output_names = [one.name for one in model.outputs]
        self._outputs = [empty(one.shape, one.dtype) for one in model.outputs]
        self._workspace = [empty((model.workspace_bytes,), "uint8")] if model.workspace_bytes else []
        self._given: set[int] = set()

    def inputs_without_value(self) -> list[str]:
        """The inputs that have no value yet."""
        return [name for index, name in enumerate(self._names) if index not in self._given]

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input, by name or position."""
        index = self._names.index(key) if isinstance(key, str) else key
        place = self._inputs[index]
        given = value if isinstance(value, NDArray) else as_input(value, place.dtype)
        if given.dtype != place.dtype or given.shape != place.shape:
            raise failure(
                "ValueError",
                f"the input {self._names[index]} is {place.dtype} of shape {list(place.shape)}, "
                f"not {given.dtype} of shape {list(given.shape)}",
            )
        given.copyto(place)
        self._given.add(index)

    def host_call(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """None: a function has no quicker way than its steps."""

    def run(self) -> None:
        """Runs the model."""
        self._function(*self._inputs, *self._outputs, *self._workspace)

    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._output_names)

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output by position or name, which the next run overwrites; copied into ``out`` if given."""
        found = self._outputs[self._output_names.index(index) if isinstance(index, str) else index]
        return found if out is None else found.copyto(out)
