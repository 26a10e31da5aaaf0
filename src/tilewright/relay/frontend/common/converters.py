"""Tables of converters by the names of operators, for frontends whose operators need nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Converter = Callable[..., Any]
AnyConverter = TypeVar("AnyConverter", bound=Converter)


class Converters:
    """The converters of one frontend."""

    def __init__(self) -> None:
        self._by_name: dict[str, Converter] = {}

    def register(self, *names: str) -> Callable[[AnyConverter], AnyConverter]:
        """A decorator that registers a converter of operators of these names."""

        def register(function: AnyConverter) -> AnyConverter:
            for name in names:
                if name in self._by_name:
                    raise ValueError(f"there are two converters of {name}")
                self._by_name[name] = function
            return function

        return register

    def find(self, name: str) -> Converter | None:
        """The converter of an operator, or None."""
        return self._by_name.get(name)

    def names(self) -> list[str]:
        """The operators that can be converted."""
        return sorted(self._by_name)
