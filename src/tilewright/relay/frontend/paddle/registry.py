"""The registry of converters of PaddlePaddle's operators.

A converter takes the node and its inputs in the order of ``reads``: None for one that is not given, a list for one
whose name ends in ``*``. It gives the results in the order of ``writes``; a list for one whose name ends in ``*``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)


@dataclass(frozen=True)
class Entry:
    """How an operator is converted."""

    convert: Converter
    reads: tuple[str, ...]
    writes: tuple[str, ...]


_CONVERTERS: Final[dict[str, Entry]] = {}


def converter(*names: str, reads: str = "X", writes: str = "Out") -> Callable[[AnyConverter], AnyConverter]:
    """Register a converter of operators; inputs and outputs are separated by spaces."""

    def register(function: AnyConverter) -> AnyConverter:
        for name in names:
            if name in _CONVERTERS:
                raise ValueError(f"there are two converters of {name}")
            _CONVERTERS[name] = Entry(function, tuple(reads.split()), tuple(writes.split()))
        return function

    return register


def find_converter(name: str) -> Entry | None:
    """How an operator is converted."""
    return _CONVERTERS.get(name)


def converted_names() -> list[str]:
    """The operators that can be converted."""
    return sorted(_CONVERTERS)
