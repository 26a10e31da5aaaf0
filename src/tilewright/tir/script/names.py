"""Names of variables and buffers in a printed program.

A name is unique among those that are in scope where it is introduced. It is the variable's own where that is
a free Python identifier; otherwise characters that Python does not allow become underscores and a number is
appended.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RESERVED = frozenset({"range", "float", "int", "bool", "str", "tvm", "inf", "nan", "self", "print"})
"""Names that mean something else in a script."""


def identifier(name: str) -> str:
    """The nearest Python identifier; what starts with two underscores would be mangled inside a class."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII) or "v"
    if made.startswith("__"):
        made = "v" + made
    return f"v{made}" if made[0].isdigit() else made


class NameTable:
    """The names given so far, by node, and those in use."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self.reserved = RESERVED | reserved
        self.names: dict[Any, str] = {}
        self.used: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """A name that nothing in scope has."""
        base = identifier(wanted)
        name, number = base, 0
        while name in self.used or name in self.reserved or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self.used[name] = self.used.get(name, 0) + 1
        return name

    def define(self, node: Any, wanted: str) -> str:
        """Give a variable or buffer its name."""
        name = self.names[node] = self.fresh(wanted)
        return name

    def alias(self, node: Any, text: str) -> None:
        """Let a variable be written as this text."""
        self.names[node] = text

    def get(self, node: Any) -> str | None:
        """The name of a variable or buffer, if it has one here."""
        return self.names.get(node)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are given within the block are free again after it."""
        names, used = dict(self.names), dict(self.used)
        try:
            yield
        finally:
            self.names, self.used = names, used
