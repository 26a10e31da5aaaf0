"""The registry of converters of Darknet's layers. A converter takes the node and the result of the layer before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_CONVERTERS: Final[dict[str, Converter]] = {}


def converter(*names: str) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of layers."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"there are two converters of {name}")
            _CONVERTERS[name] = function
        return function

    return register


def find_converter(name: str) -> Converter | None:
    """The converter of a layer."""
    return _CONVERTERS.get(name)


def converted_names() -> list[str]:
    """The layers that can be converted."""
    return sorted(_CONVERTERS)
