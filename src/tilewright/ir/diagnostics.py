"""Diagnostics: messages about a user's program, collected, then shown together with the lines they are about."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tilewright.support.errors import DiagnosticError, TilewrightError
from tilewright.support.span import Span


class DiagnosticLevel(IntEnum):
    """How grave a message is."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


@dataclass(frozen=True)
class Diagnostic:
    """One message about a place."""

    level: DiagnosticLevel
    span: Span | None
    message: str

    def text(self, sources: dict[str, str] | None = None) -> str:
        """The message, its place, and the source line with a caret where the line can be read."""
        head = f"{self.level.name.lower()}: {self.message}"
        if self.span is None:
            return head
        place = f"  --> {self.span.source_name.name}:{self.span.line}:{self.span.column}"
        line = self._source_line(sources or {})
        if line is None:
            return f"{head}\n{place}"
        width = max(1, self.span.end_column - self.span.column) if self.span.end_line == self.span.line else 1
        marker = f"\n   {' ' * (self.span.column - 1)}{'^' * width}" if self.span.column > 0 else ""
        return f"{head}\n{place}\n   {line}{marker}"

    def _source_line(self, sources: dict[str, str]) -> str | None:
        """The line that the span begins on."""
        if self.span is None:
            return None
        text = sources.get(self.span.source_name.name)
        if text is None:
            return linecache.getline(self.span.source_name.name, self.span.line).rstrip("\n") or None
        lines = text.splitlines()
        return lines[self.span.line - 1] if 0 < self.span.line <= len(lines) else None


class DiagnosticRenderer:
    """Shows the diagnostics of a context."""

    def __init__(self, render_func: Callable[[DiagnosticContext], None]) -> None:
        self.render_func = render_func

    def render(self, ctx: DiagnosticContext) -> None:
        """Show them."""
        self.render_func(ctx)


class DiagnosticContext:
    """Collects diagnostics about a module; ``render`` shows them and fails if one is an error.

    ``sources`` gives the text of sources that are not files, by name.
    """

    def __init__(
        self, module: Any, renderer: DiagnosticRenderer | None = None, sources: dict[str, str] | None = None
    ) -> None:
        self.module = module
        self.renderer = renderer if renderer is not None else get_renderer()
        self.sources = dict(sources or {})
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Add one."""
        self.diagnostics.append(diagnostic)

    def emit_fatal(self, diagnostic: Diagnostic) -> None:
        """Add one, show all and fail."""
        self.emit(diagnostic)
        self.render()

    def render(self) -> None:
        """Show all; raise ``DiagnosticError`` if one is an error or a bug. The context is empty afterwards."""
        grave = [each for each in self.diagnostics if each.level <= DiagnosticLevel.ERROR]
        try:
            if self.diagnostics:
                self.renderer.render(self)
        finally:
            self.diagnostics = []
        if grave:
            raise DiagnosticError("\n".join(each.text(self.sources) for each in grave), span=None)


def _render_to_terminal(ctx: DiagnosticContext) -> None:
    """The default: every diagnostic to standard error."""
    for diagnostic in ctx.diagnostics:
        sys.stderr.write(diagnostic.text(ctx.sources) + "\n")


_overriding: list[Callable[[], DiagnosticRenderer]] = []


def get_renderer() -> DiagnosticRenderer:
    """The renderer that new contexts get: the user's, or the one that writes to standard error."""
    return _overriding[-1]() if _overriding else DiagnosticRenderer(_render_to_terminal)


def override_renderer(render_func: Callable[[DiagnosticContext], None] | None) -> None:
    """Show diagnostics with this function from now on; None restores the default."""
    _overriding.clear()
    if render_func is not None:
        _overriding.append(lambda: DiagnosticRenderer(render_func))


def report(problem: TilewrightError) -> None:
    """Show an error that is about to be raised to the user's renderer, where there is one. Without, the error itself
    says everything."""
    if _overriding:
        context = DiagnosticContext(None)
        context.emit(Diagnostic(DiagnosticLevel.ERROR, problem.span, problem.message))
        context.renderer.render(context)
