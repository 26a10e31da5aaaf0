"""Names of variables and buffers in a printed program.

A name is unique among those in scope where it is introduced. It is the variable's own name if that is an unused Python
identifier; otherwise characters that Python does not allow become underscores and a number is appended.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

RESERVED = frozenset({"range", "float", "int", "bool", "str", "tvm", "inf", "nan", "self", "print"})
"""Names that mean something else in a script."""


def identifier(name: str) -> str:
    """The nearest Python identifier; two underscores at the beginning would be mangled inside a class."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII) or "v"
    return f"v{made}" if made[0].isdigit() or made[0] == "_" else made


class NameTable:
    """The names given so far, by node, and those in use. Leaving a scope undoes what was done in it."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self.reserved = RESERVED | reserved
        self.names: dict[Any, str] = {}
        self.used: set[str] = set()
        self.defined: set[str] = set()
        self._undo: list[Callable[[], object]] = []

    def _fresh(self, node: Any, wanted: str) -> str:
        """Name a node as nothing in scope is named."""
        base = identifier(wanted)
        name, number = base, 0
        while name in self.used or name in self.reserved or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self._undo.append(lambda: self.used.discard(name))
        self.alias(node, name)
        return name

    def alias(self, node: Any, text: str) -> None:
        """Let a variable be written as this text."""
        hidden = self.names.get(node)
        self.names[node] = text
        if hidden is None:
            self._undo.append(lambda: self.names.pop(node, None))
        else:
            self._undo.append(lambda: self.names.__setitem__(node, hidden))

    def define(self, node: Any, wanted: str) -> str:
        """Give a variable or buffer its name; one that was mentioned before it is defined keeps that name."""
        name = self.names.get(node)
        if name is None or name in self.defined:
            name = self._fresh(node, wanted)
        self.defined.add(name)
        self._undo.append(lambda: self.defined.discard(name))
        return name

    def mention(self, node: Any, wanted: str) -> str:
        """The name of something that may be defined further on, or nowhere."""
        found = self.names.get(node)
        return self._fresh(node, wanted) if found is None else found

    def get(self, node: Any) -> str | None:
        """The name of a variable or buffer, if it has one here."""
        return self.names.get(node)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are given within the block are free again after it."""
        mark = len(self._undo)
        try:
            yield
        finally:
            while len(self._undo) > mark:
                self._undo.pop()()
