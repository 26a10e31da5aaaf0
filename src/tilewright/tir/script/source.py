"""The source of a script: its text, its location in a file, and its environment."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import ParseError
from tilewright.support.span import SourceName, Span


@dataclass(frozen=True)
class Source:
    """The text of a script. ``first_line`` and ``indent`` give its position in its file."""

    filename: str
    lines: tuple[str, ...]
    first_line: int = 1
    indent: int = 0

    def span(self, node: ast.AST) -> Span:
        """The place of a piece of syntax."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
        column, end_column = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        return Span(
            SourceName(self.filename),
            self.first_line + line - 1,
            self.first_line + (end_line or line) - 1,
            self.indent + column + 1,
            self.indent + (end_column or column) + 1,
        )

    def error(self, node: ast.AST, message: str) -> ParseError:
        """An error that shows the line, with a caret under the piece of syntax."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        # The column counts bytes of UTF-8, the caret is positioned by characters.
        shift = len(text.encode()[:column].decode(errors="ignore"))
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else None
        width = max(1, len(text.encode()[column:end].decode(errors="ignore"))) if end else 1
        place = f"{self.filename}:{self.first_line + line - 1}:{self.indent + shift + 1}"
        problem = ParseError(f"{place}: {message}\n    {text}\n    {' ' * shift}{'^' * width}")
        problem.span = self.span(node)  # the text has it already
        return problem

    def parse(self) -> ast.Module:
        """The syntax tree of the text."""
        try:
            return ast.parse("\n".join(self.lines))
        except SyntaxError as error:
            marker = ast.Pass(lineno=error.lineno or 1, col_offset=max((error.offset or 1) - 1, 0))
            raise self.error(marker, f"this is not Python: {error.msg}") from None
        except (RecursionError, MemoryError):
            raise ParseError(f"{self.filename}: the script is nested too deeply to be read") from None
        except ValueError as error:
            raise ParseError(f"{self.filename}: the script cannot be read: {error}") from None


def source_of_text(text: str, filename: str = "<script>") -> Source:
    """The source of a script that is given as text."""
    return Source(filename, tuple(textwrap.dedent(text).split("\n")))


def source_of_object(found: Any) -> Source:
    """The source of a Python function, from its file."""
    try:
        lines, first_line = inspect.getsourcelines(found)
        filename = inspect.getsourcefile(found) or "<unknown>"
    except (OSError, TypeError) as error:
        raise ParseError(
            f"the source text of {getattr(found, '__name__', found)} cannot be read: {error}; "
            "a script needs a file, or its text as an argument of from_source"
        ) from None
    text = "".join(lines)
    indent = len(lines[0]) - len(lines[0].lstrip())
    return Source(filename, tuple(textwrap.dedent(text).split("\n")), max(first_line, 1), indent)


def environment_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that a function sees: globals, and variables of the functions around it."""
    environment = dict(getattr(function, "__globals__", {}))
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=False):
        try:
            environment[name] = cell.cell_contents
        except ValueError:
            # The variable gets its value only after the function is defined.
            continue
    return environment


_IMPORT = re.compile(r"^\s*(?:#\s*)?from \w+(?:\.\w+)*script import tir(?: as (\w+))?\s*$", re.MULTILINE)


def namespace_aliases(text: str) -> list[str]:
    """The names under which a text imports the script language, in comments too."""
    return [match.group(1) or "tir" for match in _IMPORT.finditer(text)]
