"""The registry of converters of MXNet's operators. A converter takes the node and the expressions of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)

_CONVERTERS: Final[dict[str, Converter]] = {}
_READ: Final[dict[str, int]] = {}
"""How many inputs the converters read of operators that have labels for training after them."""


def converter(*names: str, reads: int | None = None) -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of operators; with ``reads`` it gets only the first inputs."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"there are two converters of {name}")
            _CONVERTERS[name] = function
            if reads is not None:
                _READ[name] = reads
        return function

    return register


def find_converter(name: str) -> Converter | None:
    """The converter of an operator."""
    return _CONVERTERS.get(name)


def inputs_read(name: str) -> int | None:
    """How many of its inputs the converter of an operator reads; None for all."""
    return _READ.get(name)


def converted_names() -> list[str]:
    """The operators that can be converted."""
    return sorted(_CONVERTERS)
