"""Attributes of functions and calls: named values, read as fields, as items or as a mapping."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from dataclasses import dataclass
from typing import Any


class Attrs:
    """Base of attributes: what a subclass gives are ``keys`` and items by name."""

    __slots__ = ()

    def keys(self) -> Any:
        """The names."""
        raise NotImplementedError

    def __getitem__(self, item: str) -> Any:
        raise NotImplementedError

    def items(self) -> Any:
        """Pairs of name and value."""
        return [(name, self[name]) for name in self.keys()]

    def list_field_info(self) -> list[AttrFieldInfo]:
        """The documentation of each field."""
        return [AttrFieldInfo(name, type(self[name]).__name__, "") for name in self.keys()]

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """A value that is a sequence of integers."""
        return tuple(int(value) for value in self[key])

    def get_int(self, key: str) -> int:
        """A value that is an integer."""
        return int(self[key])

    def get_str(self, key: str) -> str:
        """A value that is a string."""
        return str(getattr(self[key], "value", self[key]))


ATTRIBUTE_CLASSES: dict[str, type[Attrs]] = {}
"""The classes of attributes of operators, by the type key under which a text form names them."""


@dataclass(frozen=True)
class AttrFieldInfo:
    """One field of attributes: its name, the name of its type, and what it means."""

    name: str
    type_info: str
    description: str


class DictAttrs(Attrs):
    """Attributes in an immutable dictionary."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, k: str) -> Any:
        return self._values[k]

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
