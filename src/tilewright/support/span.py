"""Source locations of program parts.

Two kinds of source have spans: text (a parser gives line and column) and the user's Python (a frame gives file and
line). A span prints as ``file:line:column``, and as the source line itself where that can be read.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent.parent)


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a source: a file, or a description such as ``from_string``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a source, or of none (``None``); lines and columns count from one, and a column of zero is unknown."""

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int

    def same_as(self, other: object) -> bool:
        """True if this is the very same object."""
        return self is other

    def __str__(self) -> str:
        name = self.source_name.name if self.source_name else ""
        place = f"{name or '?'}:{self.line}" + (f":{self.column}" if self.column else "")
        text = linecache.getline(name, self.line).strip()
        return f"{place}: {text}" if text else place


def user_span() -> Span | None:
    """The nearest line of Python outside the package: what the user wrote. None if there is no such frame."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE) and not filename.startswith("<"):
            return Span(SourceName(filename), frame.f_lineno, frame.f_lineno, 0, 0)
        frame = frame.f_back  # type: ignore[assignment]
    return None


_SCOPE: ContextVar[Span | None] = ContextVar("tilewright_span", default=None)
_NEAR = 6


@contextmanager
def span_scope(span: Span | None) -> Iterator[None]:
    """Graph-level nodes made within the block come from this place: a node of a model, or the node that a pass
    rewrites."""
    token = _SCOPE.set(span if span is not None else _SCOPE.get())
    try:
        yield
    finally:
        _SCOPE.reset(token)


def current_span() -> Span | None:
    """The place that the innermost ``span_scope`` names; else the line of Python outside the package that asked for the
    node, if it is near. A pass, which is far from any, finds none."""
    scoped = _SCOPE.get()
    if scoped is not None:
        return scoped
    frame = sys._getframe(2)
    for _ in range(_NEAR):
        if frame is None:
            return None
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE) and not filename.startswith("<"):
            return Span(SourceName(filename), frame.f_lineno, frame.f_lineno, 0, 0)
        frame = frame.f_back  # type: ignore[assignment]
    return None
