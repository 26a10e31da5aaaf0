"""A program of the virtual machine, used like a graph: set inputs by name, run, get outputs by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.runtime.container import ADT
from tilewright.runtime.failure import failure
from tilewright.runtime.input_values import as_input
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.vm_program import VMProgram


class ProgramExecutor:
    """Calls ``main`` of a program; ``invoke`` is the machine's."""

    def __init__(self, program: VMProgram, invoke: Callable[..., Any]) -> None:
        self._parameters = {one.name: one for one in program.function("main").parameters}
        self._names = [one.name for one in program.outputs]
        if not self._names:
            raise failure(
                "ValueError",
                "the results of the program are not tensors: run it with runtime.vm.VirtualMachine",
            )
        self._invoke = invoke
        self._values: dict[str, NDArray] = {}
        self._results: list[NDArray] = []

    def inputs_without_value(self) -> list[str]:
        """The inputs that have no value yet."""
        return [name for name in self._parameters if name not in self._values]

    def set_input(self, key: int | str, value: Any) -> None:
        """Takes a value for an input, by name or position."""
        name = key if isinstance(key, str) else list(self._parameters)[key]
        dtype = self._parameters[name].dtype
        if dtype is None:
            raise failure("ValueError", f"the input {name} is not a tensor: use runtime.vm.VirtualMachine")
        self._values[name] = value if isinstance(value, NDArray) else as_input(value, dtype)

    def host_call(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """None: a program has no quicker way than its steps."""

    def run(self) -> None:
        """Runs the program."""
        self._results = _flat(self._invoke("main", *[self._values[name] for name in self._parameters]))

    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._names)

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output of the last run, by position or name; copied into ``out`` if given."""
        found = self._results[self._names.index(index) if isinstance(index, str) else index]
        return found if out is None else found.copyto(out)


def _flat(value: Any) -> list[NDArray]:
    """The tensors of a result."""
    if isinstance(value, NDArray):
        return [value]
    assert isinstance(value, (ADT, tuple, list))
    return [part for field in value for part in _flat(field)]
