"""Programs with marks at some of their statements, for messages: a comment above, carets below.

for i in T.serial(0, 128):
    # tir.For#0
    for j in T.serial(0, 128):
    ^^^^^^^^^^^^^^^^^^^^^^^^^^
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.tir import stmt as nodes
from tilewright.tir.script.function_printer import FunctionPrinter, print_module


class _MarkingPrinter(FunctionPrinter):
    """Notes the lines of marked statements. A loop that is marked has a line, and its range, of its own."""

    shows_zero = True

    def __init__(self, prefix: str, marked: Sequence[Any]) -> None:
        super().__init__(prefix)
        self.labels = {
            id(stmt): f"# tir.{type(stmt).__name__}#{number}" for number, stmt in enumerate(marked)
        }

    def begin(self, stmt: Any) -> None:
        label = self.labels.get(id(stmt.block if isinstance(stmt, nodes.BlockRealize) else stmt))
        if label is not None:
            self.line(label)

    def _grid(self, node: nodes.For) -> list[nodes.For]:
        grid = super()._grid(node)
        return [node] if any(id(loop) in self.labels for loop in grid) else grid


def print_marked(module: IRModule, marked: Sequence[Any]) -> str:
    """A module in TVMScript with marks at loops and blocks, which are numbered in the order given."""
    printer = _MarkingPrinter("T", list(dict.fromkeys(marked)))
    labels = set(printer.labels.values())
    lines: list[str] = []
    previous = ""
    for line in print_module(module, printer=printer).split("\n"):
        lines.append(line)
        if previous in labels:
            lines.append(" " * (len(line) - len(line.lstrip())) + "^" * len(line.strip()))
        previous = line.strip()
    return "\n".join(lines)
