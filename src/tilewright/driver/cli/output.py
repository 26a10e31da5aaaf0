"""Output of the command line: tables that fit a terminal, complete ones in a pipe, JSON on request."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.driver.cli.tables import table_lines, wrapped
from tilewright.support.errors import ModelError


def printable(text: str) -> str:
    """Text from a file as it may be shown: what a terminal would take for a command is written out (``\\x1b``)."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text
    )


def show_json(value: Any) -> None:
    """Print a value as indented JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    # JSON escapes the control characters below a space; terminals know some above, too.
    print(re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is; None where it is a file or a pipe."""
    return max(shutil.get_terminal_size().columns, 20) if sys.stdout.isatty() else None


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under named columns: fitted to the terminal where a person looks on, in full width otherwise."""
    width = terminal_width()
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    head, body = table_lines([printable(one) for one in columns], texts, width)
    show_text(title, bold=True)
    for line in head:
        print(_bold(line))
    for line in body:
        print(line)
    print()


def show_text(text: str, bold: bool = False) -> None:
    """Print a line, wrapped between words on a terminal."""
    width = terminal_width()
    for line in printable(text).split("\n"):
        for part in [line] if width is None else wrapped(line, width):
            print(_bold(part) if bold else part)


def _bold(text: str) -> str:
    """The text in bold on a terminal whose user has not set NO_COLOR."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not text else f"\x1b[1m{text}\x1b[0m"


def check_output(path: str, option: str, read: Sequence[str] = ()) -> None:
    """An error for an output that cannot be written, or that would overwrite what is ``read``; makes its folder.

    Asked before the work, so that a wrong path costs no time.
    """
    target = Path(path)
    if target.is_dir():
        raise ModelError(f"{path} is a folder: name a file with {option}")
    for source in read:
        if target.exists() and os.path.exists(source) and os.path.samefile(target, source):
            raise ModelError(
                f"{path} is an input and would be overwritten: choose another name with {option}"
            )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as problem:
        in_the_way = isinstance(problem, (FileExistsError, NotADirectoryError))
        reason = "its parent is a file, not a folder" if in_the_way else problem.strerror
        raise ModelError(
            f"{path} cannot be written ({reason}): choose another place with {option}"
        ) from problem


_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m", "#": "\x1b[1m"}
"""Of the lines of a diff, by their first character: green, red, cyan and bold."""


def coloured_diff(text: str) -> str:
    """The lines of a diff in colours, for a terminal."""
    return "\n".join(
        f"{_COLOURS[line[0]]}{line}\x1b[0m" if line[:1] in _COLOURS else line for line in text.split("\n")
    )


class DiffOutput:
    """Writes diffs to standard error, in colours where a person looks on and has not set NO_COLOR."""

    def write(self, text: str, /) -> int:
        """Write lines of a diff."""
        colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        return sys.stderr.write(coloured_diff(text) if colours else text)


def bytes_text(size: int) -> str:
    """A number of bytes as a person would write it: ``48 KiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} {unit}" if amount == int(amount) else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
