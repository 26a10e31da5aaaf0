"""Sessions: a model as a function from named arrays to named arrays, which any number of threads may call at once."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.support import html


class Executor(Protocol):
    """What a session needs of an executor: ``GraphExecutor`` and ``ProgramExecutor`` have it."""

    def inputs_without_value(self) -> list[str]:
        """The inputs that are not parameters."""

    def set_input(self, key: int | str, value: Any) -> None:
        """Copies a value into an input."""

    def run(self) -> None:
        """Runs the model."""

    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output that the next run overwrites."""

    def host_call(
        self, inputs: Sequence[str], outputs: Sequence[str]
    ) -> Callable[[Mapping[str, Any]], dict[str, Any] | None] | None:
        """A quicker way from values for these inputs to the outputs, by the names that they are given, which gives None
        for values that it does not take; None if there is none."""


class _Caller:
    """An executor, and the quickest way to call it."""

    def __init__(self, executor: Executor, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._executor = executor
        self._inputs = inputs
        self._outputs = outputs
        self._quick = executor.host_call(inputs, outputs)

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        found = None if self._quick is None else self._quick(inputs)
        if found is not None:
            return found
        for name in self._inputs:
            self._executor.set_input(name, inputs[name])
        self._executor.run()
        return {name: self._executor.get_output(index).numpy() for index, name in enumerate(self._outputs)}


class Session:
    """A model that is called with its inputs by name: ``session.run({"image": image})["probabilities"]``.

    The outputs have the model's names, or ``output_0`` and so on for a model without names.

    Every call that runs at the same time as another has an executor of its own, with its own intermediate memory;
    executors are kept for later calls, and all of them share the parameters.
    """

    def __init__(self, make: Callable[[], Executor], output_names: Sequence[str] | None = None) -> None:
        """``make`` gives a new executor with its parameters set; ``output_names``, in order, replace the model's."""
        self._make = make
        self._lock = threading.Lock()
        first = make()
        self.input_names: tuple[str, ...] = tuple(first.inputs_without_value())
        """The inputs that ``run`` needs."""
        own = first.output_names()
        count = len(own)
        names = own if output_names is None else output_names
        if len(names) != count or len(set(names)) != count:
            raise failure(
                "ValueError",
                f"the model has {count} outputs, which need as many different names, not {list(names)}",
            )
        self.output_names: tuple[str, ...] = tuple(names)
        """The outputs of ``run``."""
        self._known = frozenset(self.input_names)
        self._idle = [self._caller(first)]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """The outputs by name, as new NumPy arrays, for inputs by name: arrays of any library, or lists of numbers."""
        if type(inputs) is not dict or inputs.keys() != self._known:
            self._check_names(inputs)
        caller = self._take()
        try:
            return caller(inputs)
        finally:
            with self._lock:
                self._idle.append(caller)

    def _take(self) -> _Caller:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._caller(self._make())

    def _caller(self, executor: Executor) -> _Caller:
        return _Caller(executor, self.input_names, self.output_names)

    def _check_names(self, inputs: Mapping[str, Any]) -> None:
        if not isinstance(inputs, Mapping):
            raise failure("TypeError", f"the inputs are a dictionary by name, not a {type(inputs).__name__}")
        known = ", ".join(self.input_names) or "none"
        for name in inputs:
            if name not in self.input_names:
                near = difflib.get_close_matches(str(name), self.input_names, 1)
                meant = f"; did you mean {near[0]!r}?" if near else "."
                raise failure("ValueError", f"the model has no input {name!r}{meant} Its inputs: {known}")
        missing = [name for name in self.input_names if name not in inputs]
        if missing:
            raise failure(
                "ValueError", f"no value for the input {', '.join(missing)}. The model's inputs: {known}"
            )

    def _repr_html_(self) -> str:
        """Its inputs and outputs for a notebook."""
        names = [
            ("inputs", ", ".join(self.input_names)),
            ("outputs", ", ".join(self.output_names)),
        ]
        return html.fragment("Session", html.facts(names), subtitle="session.run({name: array})")

    def __repr__(self) -> str:
        return f"Session({', '.join(self.input_names)} -> {', '.join(self.output_names)})"
