"""Sequences and mappings that the public functions return: Python's own types with TVM's names."""

from __future__ import annotations

import json
from collections.abc import Iterable, KeysView, Mapping, ValuesView
from typing import Any, ClassVar, TypeVar

from tilewright.ir.expr import StringImm
from tilewright.support.node import Object

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Array(tuple[T, ...], Object):
    """An immutable sequence; slices and sums are sequences of the same kind."""

    __slots__ = ()

    type_key: ClassVar[str] = "Array"

    def __getitem__(self, idx: Any) -> Any:
        found = tuple.__getitem__(self, idx)
        return Array(found) if isinstance(idx, slice) else found

    def __add__(self, other: Any) -> Array[Any]:
        return Array((*self, *other))

    def __radd__(self, other: Any) -> Array[Any]:
        return Array((*other, *self))

    def __repr__(self) -> str:
        return f"[{', '.join([_shown(item) for item in self])}]"


class Map(dict[K, V], Object):
    """An immutable mapping; string constants as keys find what strings find."""

    __slots__ = ()

    type_key: ClassVar[str] = "Map"

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        dict.__init__(self, [(_plain_key(key), value) for key, value in pairs])

    def __getitem__(self, k: Any) -> V:
        return dict.__getitem__(self, _plain_key(k))

    def __contains__(self, k: object) -> bool:
        return dict.__contains__(self, _plain_key(k))

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of the key, or the default."""
        return dict.get(self, _plain_key(key), default)

    def keys(self) -> KeysView[K]:  # type: ignore[override]
        """The keys."""
        return KeysView(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        """The values."""
        return ValuesView(self)

    def items(self) -> list[tuple[K, V]]:  # type: ignore[override]
        """Pairs of keys and values, as a list."""
        return list(dict.items(self))

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """An error: a Map cannot change."""
        raise TypeError("a Map cannot change; make a dict of it first")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __repr__(self) -> str:
        return f"{{{', '.join([f'{_shown(key)}: {_shown(value)}' for key, value in dict.items(self)])}}}"

    def __hash__(self) -> int:  # type: ignore[override]
        return object.__hash__(self)


def _shown(value: Any) -> str:
    """An element as TVM writes it: what holds numbers and strings is valid JSON."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _plain_key(key: Any) -> Any:
    """A string for a string constant; everything else as it is."""
    return key.value if isinstance(key, StringImm) else key
