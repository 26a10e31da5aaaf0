"""Tables of text that fit the width they are printed in, without leaving anything out.

A table that is too wide first gets its headings, then its columns of words wrapped. If that is not enough, its long
columns stand on lines of their own below or above the row, and at last every cell does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

INDENT = "  "
_GAP = "  "
_NARROWEST_TEXT = 16
"""A column of words is not made narrower than this."""
_LONG = 20
"""Cells longer than this may leave the row."""
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_BREAKS = re.compile(r"(?<=[_/.,:=-])")
"""Where a word may be broken that is too long for its line."""

Rows = Sequence[Sequence[str]]


def display_width(text: str) -> int:
    """The columns of a terminal that a text takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most this width, broken between words; a word that is too long for a line is broken after
    an underscore, a slash or the like, or anywhere if need be."""
    lines = [""]
    for word in _WORDS.findall(text):
        pieces = [word] if display_width(word.rstrip()) <= width else _BREAKS.split(word)
        for piece in pieces:
            _append(lines, piece, width)
    return [line.rstrip() for line in lines]


def _append(lines: list[str], piece: str, width: int) -> None:
    """Add a piece to the last line, or begin others with it."""
    if display_width((lines[-1] + piece).rstrip()) <= width:
        lines[-1] += piece
        return
    if lines[-1]:
        lines.append("")
        piece = piece.lstrip()
    while display_width(piece.rstrip()) > width:
        cut = _fitting(piece, width)
        lines[-1] = piece[:cut]
        lines.append("")
        piece = piece[cut:]
    lines[-1] = piece


def _fitting(text: str, width: int) -> int:
    """How many characters of a text fit, at least one."""
    used = 0
    for count, one in enumerate(text):
        used += display_width(one)
        if used > width and count:
            return count
    return len(text)


def table_lines(columns: Sequence[str], rows: Rows, width: int | None = None) -> tuple[list[str], list[str]]:
    """The lines of the heading and of the rows, at most ``width`` wide; None is any width, for a file or a pipe."""
    if not columns:
        return [], []
    natural = [
        max([display_width(columns[place]), *(display_width(row[place]) for row in rows)])
        for place in range(len(columns))
    ]
    if width is None or _total(natural) <= width:
        return _lines([columns], natural), _lines(rows, natural)
    # Headings that are wider than what stands under them are wrapped first.
    cells = [max([1, *(display_width(row[place]) for row in rows)]) for place in range(len(columns))]
    words = [max(map(display_width, name.split()), default=1) for name in columns]
    widths = [max(cell, word) for cell, word in zip(cells, words, strict=True)]
    widths = _narrowed(widths, words, width)
    if _total(widths) <= width:
        return _wrapped_lines([columns], widths), _wrapped_lines(rows, widths)
    return _stacked(columns, rows, words, cells, width)


def _total(widths: Sequence[int]) -> int:
    return len(INDENT) + sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrowed(widths: Sequence[int], words: Sequence[int], width: int) -> list[int]:
    """The widths with the widest columns narrowed, as far as they may be, until the table fits."""
    found = list(widths)
    least = [min(cell, max(word, _NARROWEST_TEXT)) for cell, word in zip(widths, words, strict=True)]
    while _total(found) > width:
        candidates = [place for place in range(len(found)) if found[place] > least[place]]
        if not candidates:
            break
        widest = max(candidates, key=lambda place: found[place])
        found[widest] -= 1
    return found


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * max(size - display_width(cell), 0) for cell, size in zip(cells, widths, strict=True)
    ]
    return (INDENT + _GAP.join(padded)).rstrip()


def _lines(rows: Rows, widths: Sequence[int]) -> list[str]:
    return [_line(row, widths) for row in rows]


def _wrapped_lines(rows: Rows, widths: Sequence[int]) -> list[str]:
    lines = []
    for row in rows:
        parts = [wrapped(cell, size) for cell, size in zip(row, widths, strict=True)]
        for number in range(max(map(len, parts))):
            cells = [part[number] if number < len(part) else "" for part in parts]
            lines.append(_line(cells, widths))
    return lines


def _stacked(
    columns: Sequence[str], rows: Rows, words: Sequence[int], cells: Sequence[int], width: int
) -> tuple[list[str], list[str]]:
    """Rows whose long cells stand on lines of their own: the first one above the rest, the others below."""
    long = [place for place in range(len(columns)) if place == 0 or cells[place] > _LONG]
    short = [place for place in range(len(columns)) if place not in long]
    widths = [max(cells[place], words[place]) for place in short]
    fits = bool(short) and _total(widths) + len(INDENT) <= width
    heading, lines = [], []
    if fits:
        heading = _hanging(columns[0], width, 1)
        heading += [INDENT + line for line in _wrapped_lines([[columns[place] for place in short]], widths)]
    for row in rows:
        lines += _hanging(row[0], width, 1)
        if fits:
            lines += [INDENT + line for line in _lines([[row[place] for place in short]], widths) if line]
        for place in range(1, len(columns)):
            if row[place] and (place in long or not fits):
                label = f"{columns[place]}: " if columns[place] else ""
                lines += _hanging(label + row[place], width, 2)
    return heading, lines


def _hanging(text: str, width: int, levels: int) -> list[str]:
    """A text in lines that are all indented."""
    indent = levels * INDENT
    return [(indent + line).rstrip() for line in wrapped(text, width - len(indent))]
