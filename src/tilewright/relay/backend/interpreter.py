"""The "debug" executor: the reference interpreter, as users create it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay import interpreter
from tilewright.relay.backend.executor import Executor, as_host_value, as_result, ordered_arguments
from tilewright.relay.infer import infer_expr, infer_module
from tilewright.relay.interpreter import Closure, ConstructorValue, RefValue
from tilewright.runtime.container import ADT, tuple_object
from tilewright.runtime.ndarray import NDArray

__all__ = ["ConstructorValue", "Executor", "Interpreter", "RefValue"]


class Interpreter(Executor):
    """Runs programs on NumPy references, whatever their device and target."""

    def __init__(self, mod: IRModule | None, device: Any = None, target: Any = None) -> None:
        super().__init__(mod if mod is not None else IRModule(), device, target)

    def make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        """A Python function that interprets the graph-level one."""
        module = infer_module(self.mod)
        function = self.entry(expr)
        if function not in module.functions.values():
            function = infer_expr(function, module)  # type: ignore[assignment]

        def run(*args: Any, **kwargs: Any) -> Any:
            arguments = ordered_arguments(function, args, kwargs)
            machine = interpreter.Interpreter(module)
            value = machine.run(function, [as_host_value(argument) for argument in arguments])
            return _wrap(value, machine)

        return run


def _wrap(value: Any, machine: interpreter.Interpreter) -> Any:
    """Results as users get them; a closure is a Python function."""
    if isinstance(value, Closure):
        return lambda *args: _wrap(
            machine.call(value, [as_host_value(argument) for argument in args]), machine
        )
    if isinstance(value, ConstructorValue):
        fields = [_wrap(part, machine) for part in value.fields]
        return ConstructorValue(value.tag, fields, value.constructor)
    if isinstance(value, RefValue):
        return RefValue(_wrap(value.value, machine))
    if isinstance(value, tuple):
        parts = [_wrap(part, machine) for part in value]
        # As from the virtual machine; what only the interpreter has cannot be part of such a value.
        return tuple_object(parts) if all(isinstance(part, (NDArray, ADT)) for part in parts) else parts
    return as_result(value)
