"""The registry of converters of Keras layers, and of operations of ``keras.ops``, by class name.

A converter takes the node and the layer's arguments as it is called, tensors as expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_LAYERS: Final[dict[str, Converter]] = {}
_OPERATIONS: Final[dict[str, Converter]] = {}


def _registering(
    table: dict[str, Converter], names: tuple[str, ...]
) -> Callable[[AnyConverter], AnyConverter]:
    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in table:
                raise ValueError(f"there are two converters of {name}")
            table[name] = function
        return function

    return register


def layer_converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of layers."""
    return _registering(_LAYERS, names)


def operation_converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of operations of ``keras.ops``."""
    return _registering(_OPERATIONS, names)


def find_converter(operation: Any) -> Converter | None:
    """The converter of a layer or operation. Classes of other packages than Keras have none, whatever their names."""
    kinds = [kind.__name__ for kind in type(operation).__mro__]
    if not str(type(operation).__module__).startswith("keras."):
        return None
    return (_LAYERS if "Layer" in kinds else _OPERATIONS).get(kinds[0])
