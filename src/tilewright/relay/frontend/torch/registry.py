"""The converters of PyTorch's operators, by name, with or without an overload.

Importers bind each call to its schema, so a converter is a function with the parameters of the schema, by name:
``self`` is called ``input`` and ``from`` is called ``start``. Parameters that say nothing about values (where a tensor
is stored, and how) may be left out; any other that a converter leaves out has to have its default in the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.node import TorchNode

_RENAMED: Final = {"self": "input", "from": "start"}
_IGNORED: Final = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "implicit", "requires_grad"}
)
"""Parameters that do not change a value."""
_DTYPES: Final = frozenset({"dtype", "output_dtype", "out_dtype"})

Function = Callable[..., Any]
AnyFunction = TypeVar("AnyFunction", bound=Function)


@dataclass(frozen=True)
class Converter:
    """A function that converts calls of an operator, and the names of its parameters."""

    function: Function
    parameters: frozenset[str]
    takes_all: bool = False

    def __call__(self, node: TorchNode, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
        """Convert a call whose arguments are named as in the schema; ``defaults`` are the schema's."""
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            own = _RENAMED.get(name, name)
            if own in self.parameters or (self.takes_all and own not in _IGNORED):
                is_number = own in _DTYPES and isinstance(value, int) and not isinstance(value, bool)
                given[own] = dtype_name(value) if is_number else value
            elif own not in _IGNORED and not _is_default(value, defaults.get(name)):
                raise node.fail(f"{name}={value!r} is not supported")
        return self.function(node, **given)


def _is_default(value: Any, default: Any) -> bool:
    return value is None or (isinstance(value, (bool, int, float, str, list)) and value == default)


Table = dict[str, Converter]
_CONVERTERS: Final[Table] = {}
_COMPLEX_CONVERTERS: Final[Table] = {}


def converter(*names: str) -> Callable[[AnyFunction], AnyFunction]:
    """Register a converter of operators: ``"aten::add"`` for all overloads, ``"aten::add.Tensor"`` for one."""
    return _registering(_CONVERTERS, names)


def complex_converter(*names: str) -> Callable[[AnyFunction], AnyFunction]:
    """Register a converter of operators for calls with complex tensors or types among their arguments."""
    return _registering(_COMPLEX_CONVERTERS, names)


def _registering(table: Table, names: Iterable[str]) -> Callable[[AnyFunction], AnyFunction]:
    def register(function: AnyFunction) -> AnyFunction:
        taken = list(inspect.signature(function).parameters.values())[1:]
        parameters = frozenset(one.name for one in taken if one.kind is not one.VAR_KEYWORD)
        takes_all = any(one.kind is one.VAR_KEYWORD for one in taken)
        for name in names:
            if name in table:
                raise ValueError(f"there are two converters of {name}")
            table[name] = Converter(function, parameters, takes_all)
        return function

    return register


def find_converter(name: str, overload: str = "") -> Converter | None:
    """The converter of ``"aten::add"`` and an overload: that of the overload if there is one, else that of the
    operator. What an operator in place computes is what the one without the underscore does."""
    return _found(_CONVERTERS, name, overload)


def find_complex_converter(name: str, overload: str = "") -> Converter | None:
    """The converter for calls with complex tensors."""
    return _found(_COMPLEX_CONVERTERS, name, overload)


def names_of(name: str) -> list[str]:
    """An operator's name, and that of the one which is not in place."""
    return [name, name[:-1]] if name.endswith("_") and not name.endswith("__") else [name]


def _found(table: Table, name: str, overload: str) -> Converter | None:
    for candidate in names_of(name):
        found = table.get(f"{candidate}.{overload}") if overload else None
        found = found or table.get(candidate)
        if found is not None:
            return found
    return None


def converted_names() -> Iterable[str]:
    """The names under which there are converters."""
    return _CONVERTERS.keys()
