"""The tokenizer: a token is a part of the text with a kind and a location."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple, NoReturn

from tilewright.ir.diagnostics import Diagnostic, DiagnosticContext, DiagnosticLevel
from tilewright.relay.literals import NAME_PATTERN, WORD_PATTERN
from tilewright.support.errors import DiagnosticError, ParseError
from tilewright.support.span import SourceName, Span


class TextFormError(ParseError, DiagnosticError):
    """A text of graph-level programs cannot be read; shows the line with a caret."""


class Token(NamedTuple):
    """A piece of the source from ``start`` to ``end``. Symbols and words have their text as kind."""

    kind: str
    text: str
    start: int
    end: int


STRING: Final = r'"(?:[^"\\\n]|\\.)*"'

_PATTERN = re.compile(
    rf"""
    (?P<space> \s+ | //[^\n]* )
  | (?P<comment> /\* )
  | (?P<version> \#\[version\s*=\s*"[^"\n]*"\] )
  | (?P<attributes> \#\[attributes\s*= )
  | (?P<metadata> \#\[metadata\] )
  | (?P<script> (?<![^\n]) @T\.prim_func[^\n]*\ndef\ [^\n]* (?: \n (?:[ \t][^\n]*)? (?![^\n]) )* )
  | (?P<temporary> %\d+ )
  | (?P<local> %(?: {NAME_PATTERN} | {STRING} ) )
  | (?P<global> @(?: {NAME_PATTERN} | {STRING} ) )
  | (?P<field> \.\d+ )
  | (?P<number> \d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[fiu]\d*)? )
  | (?P<string> {STRING} )
  | (?P<word> {WORD_PATTERN} )
  | (?P<symbol> -> | => | == | != | <= | >= | [()\[\]{{}},;:=+*/<>?-] )
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")

END: Final = "end of text"

DEEPEST: Final = 50_000
"""How many brackets may be open at one place: reading takes memory for each."""

_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class Source:
    """A text with its name: finds places, and reports what is wrong there."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = SourceName(name)
        self._line_starts = [0, *[match.end() for match in re.finditer("\n", text)]]

    def span(self, start: int, end: int) -> Span:
        """The place of the characters from ``start`` to before ``end``."""
        first = bisect_right(self._line_starts, start)
        last = bisect_right(self._line_starts, max(start, end - 1))
        return Span(
            self.name,
            first,
            last,
            start - self._line_starts[first - 1] + 1,
            end - self._line_starts[last - 1] + 1,
        )

    def fail(self, start: int, end: int, message: str) -> NoReturn:
        """Report an error at a place."""
        span = self.span(start, end)
        context = DiagnosticContext(None, sources={self.name.name: self.text})
        context.emit(Diagnostic(DiagnosticLevel.ERROR, span, message))
        try:
            context.render()
        except DiagnosticError as error:
            failure = TextFormError(error.message)
            failure.span = span
            raise failure from None
        raise AssertionError("a context with an error fails when it is rendered")

    def tokens(self) -> list[Token]:
        """All tokens; the last one is the end. What follows the head of the metadata section is one token."""
        found: list[Token] = []
        text, position, depth = self.text, 0, 0
        while position < len(text):
            match = _PATTERN.match(text, position)
            if match is None:
                self._fail_at(position)
            kind = str(match.lastgroup)
            end = match.end()
            if kind == "comment":
                end = self._comment_end(position)
            elif kind == "metadata":
                found.append(Token(kind, text[end:], position, end))
                break
            elif kind != "space":
                word = match.group()
                depth += _BRACKETS.get(word, 0)
                if depth > DEEPEST:
                    self.fail(position, end, "the text is nested too deeply to be read")
                found.append(Token(word if kind in ("symbol", "word") else kind, word, position, end))
            position = end
        found.append(Token(END, END, len(text), len(text)))
        return found

    def _comment_end(self, start: int) -> int:
        """Where a comment ends; comments may hold comments."""
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.text, start):
            depth += 1 if edge.group() == "/*" else -1
            if depth == 0:
                return edge.end()
        return self.fail(start, start + 2, "the comment does not end")

    def _fail_at(self, position: int) -> NoReturn:
        letter = self.text[position]
        if letter == '"':
            self.fail(position, position + 1, "the string does not end on its line")
        if letter in "%@":
            self.fail(position, position + 1, f"a name is expected after {letter}")
        self.fail(position, position + 1, f"unexpected character {letter!r}")
