"""Attributes of functions and calls: named values, read as fields, as items or as a mapping."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import Any


class Attrs:
    """Base of attributes."""

    __slots__ = ()


class DictAttrs(Attrs):
    """Attributes in an immutable dictionary."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str, default: Any = None) -> Any:
        """The attribute's value, or the default."""
        return self._values.get(key, default)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._values.keys()

    def items(self) -> ItemsView[str, Any]:
        """Pairs of name and value."""
        return self._values.items()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_values" or name not in self._values:
            raise AttributeError(f"there is no attribute {name!r}")
        return self._values[name]

    def __repr__(self) -> str:
        return repr(self._values)
