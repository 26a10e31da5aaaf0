"""Diagnostics."""

import pytest

from tilewright.ir.diagnostics import (
    Diagnostic,
    DiagnosticContext,
    DiagnosticLevel,
    DiagnosticRenderer,
    get_renderer,
    override_renderer,
)
from tilewright.ir.module import IRModule
from tilewright.support.errors import DiagnosticError
from tilewright.support.span import SourceName, Span

SOURCE = {"from_string": "fn (%x) {\n  add(%x, %y)\n}"}
SPAN = Span(SourceName("from_string"), 2, 2, 11, 13)


def test_text_has_the_line_and_a_caret() -> None:
    """A diagnostic shows the message, the place, the line and where on it."""
    text = Diagnostic(DiagnosticLevel.ERROR, SPAN, "%y is not defined").text(SOURCE)
    assert text.splitlines() == [
        "error: %y is not defined",
        "  --> from_string:2:11",
        "     add(%x, %y)",
        "             ^^",
    ]


def test_text_without_a_place() -> None:
    """Without a span, or without the source, the rest is shown."""
    assert Diagnostic(DiagnosticLevel.HELP, None, "try this").text() == "help: try this"
    assert Diagnostic(DiagnosticLevel.NOTE, SPAN, "here").text() == "note: here\n  --> from_string:2:11"


def test_errors_raise_warnings_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    """Rendering shows everything, and fails if there was an error; afterwards the context is empty."""
    context = DiagnosticContext(IRModule(), sources=SOURCE)
    context.emit(Diagnostic(DiagnosticLevel.WARNING, None, "careful"))
    context.render()
    assert "warning: careful" in capsys.readouterr().err
    context.emit(Diagnostic(DiagnosticLevel.WARNING, None, "careful"))
    with pytest.raises(DiagnosticError, match="error: bad"):
        context.emit_fatal(Diagnostic(DiagnosticLevel.ERROR, SPAN, "bad"))
    assert "careful" in capsys.readouterr().err and context.diagnostics == []
    context.render()
    assert capsys.readouterr().err == ""


def test_renderers() -> None:
    """A user's renderer takes the place of the default until it is removed."""
    shown: list[str] = []
    override_renderer(lambda ctx: shown.extend(each.message for each in ctx.diagnostics))
    try:
        context = DiagnosticContext(IRModule(), get_renderer())
        context.emit(Diagnostic(DiagnosticLevel.NOTE, None, "to the user"))
        context.render()
    finally:
        override_renderer(None)
    assert shown == ["to the user"]
    other: list[int] = []
    context = DiagnosticContext(
        IRModule(), DiagnosticRenderer(lambda ctx: other.append(len(ctx.diagnostics)))
    )
    context.emit(Diagnostic(DiagnosticLevel.NOTE, None, "one"))
    context.render()
    assert other == [1]
