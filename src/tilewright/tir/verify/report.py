"""The location of an error in a program: the statement, with a few lines around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.support.recursion import recursion_room
from tilewright.tir.script.function_printer import FunctionPrinter

_AROUND = 3
_MARK, _NO_MARK = "  > ", "    "


class _LocatingPrinter(FunctionPrinter):
    """Notes the line at which each of some statements begins."""

    def __init__(self, wanted: Sequence[Any]) -> None:
        super().__init__(short=True)
        self.wanted = {id(stmt) for stmt in wanted}
        self.found: dict[int, int] = {}

    def begin(self, stmt: Any) -> None:
        if id(stmt) in self.wanted:
            self.found[id(stmt)] = "".join(self.pieces).count("\n")


def show(func: Any, path: Sequence[Any]) -> str:
    """The lines around the innermost statement of ``path`` that begins a new line."""
    printer = _LocatingPrinter(path)
    with recursion_room():
        printer.function(str(func.attrs.get("global_symbol", "func")), func)
    lines = "".join(printer.pieces).strip("\n").split("\n")
    # The text starts with a line break, so that the statement is on the line after those counted.
    position = next((printer.found[id(stmt)] for stmt in reversed(path) if id(stmt) in printer.found), 1)
    first, last = max(position - _AROUND, 0), min(position + _AROUND + 1, len(lines))
    shown = [f"{_MARK if number == position else _NO_MARK}{lines[number]}" for number in range(first, last)]
    return "\n".join(shown)
