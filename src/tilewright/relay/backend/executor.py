"""What executors share: an expression becomes a Python function of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.backend.preparation import with_main
from tilewright.relay.expr import Constant, Var, const
from tilewright.relay.expr_functor import bind
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError


class Executor:
    """Base of executors; a subclass gives ``make_executor``."""

    def __init__(self, mod: IRModule, device: Any, target: Any) -> None:
        self.mod = mod
        self.device = device
        self.target = target

    def evaluate(self, expr: RelayExpr | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """Of a function, or where ``expr`` is left out of the module's ``main``: a Python function that runs it. Of
        another expression: its value. ``binds`` gives values to free variables."""
        if binds:
            if expr is None:
                raise TilewrightError(
                    "binds gives values to the variables of an expression: pass the expression"
                )
            expr = bind(expr, {variable: _as_constant(value) for variable, value in binds.items()})
        if expr is None:
            return self.make_executor()
        if isinstance(expr, (Function, GlobalVar)):
            return self.make_executor(expr)
        return self.make_executor(Function((), expr))()

    def make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        """A Python function that runs a function of the graph level."""
        raise NotImplementedError

    def entry(self, expr: RelayExpr | None) -> Function:
        """The function that ``make_executor`` was given: itself, by name, or the module's ``main``."""
        if isinstance(expr, Function):
            return expr
        found = self.mod[expr if isinstance(expr, GlobalVar) else "main"]
        if not isinstance(found, Function):
            raise TilewrightError(f"{expr or 'main'} is not a graph-level function")
        return found


class CompilingExecutor(Executor):
    """Base of executors that compile the whole module for its ``main``."""

    def typed_module(self, expr: RelayExpr | None) -> IRModule:
        """The module with inferred types, and the function that ``make_executor`` was given as its ``main``."""
        if expr is not None:
            self.mod = with_main(self.mod, self.entry(expr))
        return infer_module(self.mod)


def _as_constant(value: Any) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value)


def ordered_arguments(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters, by position and by name."""
    names = [parameter.name_hint for parameter in function.params]
    if len(args) > len(names):
        raise TilewrightError(f"the function takes {len(names)} arguments, {len(args)} were given")
    given: dict[int, Any] = dict(enumerate(args))
    for name, value in kwargs.items():
        positions = [position for position, known in enumerate(names) if known == name]
        if len(positions) != 1:
            raise TilewrightError(
                f"the function has no parameter {name!r}; it has {', '.join(names) or 'none'}"
            )
        if positions[0] in given:
            raise TilewrightError(f"parameter {name!r} is given by position and by name")
        given[positions[0]] = value
    missing = [name for position, name in enumerate(names) if position not in given]
    if missing:
        raise TilewrightError(f"no value for the parameters {', '.join(missing)}")
    return [_in_type(given[position], parameter) for position, parameter in enumerate(function.params)]


def _in_type(value: Any, parameter: Var) -> Any:
    """A number of Python in the type of the parameter; anything else as it is."""
    kind = getattr(parameter, "_checked_type_", None) or parameter.type_annotation
    if isinstance(value, (bool, int, float)) and isinstance(kind, TensorType):
        return np.array(value, numpy_dtype(DataType(kind.dtype)))
    return value


def as_host_value(value: Any) -> Any:
    """An argument as the interpreter takes it: arrays of NumPy, tuples of them."""
    if isinstance(value, Constant):
        return value.data.numpy()
    if isinstance(value, NDArray):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return tuple([as_host_value(part) for part in value])
    if isinstance(value, (bool, int, float)):
        return const(value).data.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return ndarray.from_dlpack(value).numpy()
    return value


def as_result(value: Any) -> Any:
    """A value as users get it: arrays as ``NDArray``."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray.array(np.ascontiguousarray(value).reshape(np.shape(value)))
    if isinstance(value, tuple):
        return [as_result(part) for part in value]
    return value
