"""A node of an MXNet symbol, as the code that converts it sees it. Attributes are text in MXNet."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from tilewright.relay.frontend.common.graph_node import GraphNode, Scope
from tilewright.relay.frontend.mxnet.symbol import SymbolEntry

_LONG: Final = re.compile(r"(?<=\d)L\b")
"""What Python 2 wrote after integers."""


class SymbolNode(GraphNode):
    """A node with its attributes read as numbers, truth values and tuples."""

    def __init__(self, entry: SymbolEntry, scope: Scope) -> None:
        super().__init__(entry.operator, entry.name, scope, entry.attributes)

    def _literal(self, name: str, default: Any) -> Any:
        text = self.attributes.get(name)
        if text is None:
            return default
        try:
            return ast.literal_eval(_LONG.sub("", str(text)).strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise self.fail(f"the attribute {name!r} is {text!r}, which is not a number or a tuple") from None

    def text(self, name: str, default: str) -> str:
        """An attribute that is a word."""
        return str(self.attributes.get(name, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        text = str(self.attributes.get(name, default)).strip().lower()
        if text not in ("true", "false", "1", "0", "none"):
            raise self.fail(f"the attribute {name!r} is {text!r}, neither true nor false")
        return text in ("true", "1")

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is an integer; without a default it has to be there."""
        found = self.optional_integer(name, default)
        if found is None:
            raise self.fail(f"the attribute {name!r} is missing")
        return found

    def optional_integer(self, name: str, default: int | None = None) -> int | None:
        """An attribute that is an integer or None."""
        found = self._literal(name, default)
        if found is not None and (not isinstance(found, (int, float)) or found != int(found)):
            raise self.fail(f"the attribute {name!r} is {found!r}, not an integer")
        return None if found is None else int(found)

    def number(self, name: str, default: float | None = None) -> float:  # type: ignore[override]
        """An attribute that is a number; without a default it has to be there."""
        text = self.attributes.get(name, default)
        if text is None:
            raise self.fail(f"the attribute {name!r} is missing")
        try:
            return float(text)
        except ValueError:
            raise self.fail(f"the attribute {name!r} is {text!r}, not a number") from None

    def numbers(self, name: str, default: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """An attribute that is a tuple of integers, None standing for what is left open; one integer is a tuple too."""
        found = self._literal(name, default)
        if found is None:
            raise self.fail(f"the attribute {name!r} is missing")
        if isinstance(found, int):
            return (found,)
        if not isinstance(found, (tuple, list)) or not all(
            one is None or isinstance(one, int) for one in found
        ):
            raise self.fail(f"the attribute {name!r} is {found!r}, not a tuple of integers")
        return tuple(found)

    def reals(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """An attribute that is a tuple of numbers; one number is a tuple too."""
        found = self._literal(name, default)
        listed = found if isinstance(found, (tuple, list)) else (found,)
        if not all(isinstance(one, (int, float)) for one in listed):
            raise self.fail(f"the attribute {name!r} is {found!r}, not a tuple of numbers")
        return tuple(float(one) for one in listed)

    def window(self, name: str, rank: int, default: int) -> tuple[int, ...]:
        """An attribute with a number for each axis of space; an empty tuple means the default."""
        found = self.numbers(name, ()) or (default,) * rank
        if len(found) != rank or None in found:
            raise self.fail(f"the attribute {name!r} is {found}, and there are {rank} axes of space")
        return found

    def chosen_axis(self, name: str, default: int, rank: int) -> int:
        """An axis counted from the front."""
        return self.from_front(self.integer(name, default), rank, name)
