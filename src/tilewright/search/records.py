"""A file of records: one JSON value a line, only ever appended to.

Several processes may append at once. Each append is one write of whole lines under an advisory lock, and is on the disk
when the call returns: a process that is killed loses nothing it was told is written. One that is killed during the
write leaves half a line, which readers skip; the next append starts a new line behind it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from tilewright.support.errors import TilewrightError

try:
    import fcntl
except ImportError:  # Windows: appends are single writes, and its own locks would keep readers out
    fcntl = None  # type: ignore[assignment]

Record = TypeVar("Record")


@dataclass(frozen=True)
class Line:
    """A line of a file, by its number, which counts from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Problem:
    """A line that is not a record, and why."""

    number: int
    reason: str


@dataclass
class Loaded(Generic[Record]):
    """What a file has: its records in order, and the lines that are none."""

    records: list[Record] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def summary(self, path: Path | str) -> str:
        """One sentence about the bad lines; empty where there are none."""
        if not self.problems:
            return ""
        first = self.problems[0]
        many = len(self.problems)
        others = "" if many == 1 else f", and {many - 1} further line{'s' if many > 2 else ''}"
        return f"{path}: line {first.number} is skipped ({first.reason}){others}"


class RecordFile:
    """Records at a path, which need not exist until something is appended."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def append(self, lines: Iterable[str]) -> None:
        """Append lines, each without its line end. They are on the disk when this returns."""
        texts = list(lines)
        if any("\n" in text or "\r" in text for text in texts):
            raise TilewrightError("a record is one line: it has no line end inside")
        if not texts:
            return
        block = "".join(f"{text}\n" for text in texts).encode()
        number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        try:
            with _locked(number):
                if _ends_within_a_line(number):
                    block = b"\n" + block
                view = memoryview(block)
                while view:
                    view = view[os.write(number, view) :]
                os.fsync(number)
        finally:
            os.close(number)

    def lines(self, comments: bool = False) -> Iterator[Line]:
        """The lines that are not empty, and no comments (which begin with ``#``) unless asked for. A last line without
        its end is one that is being written, or never was: it counts only where it is whole."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        texts = [raw.decode(errors="replace").strip() for raw in content.split(b"\n")]
        # Behind the last line end: nothing, or a line without one.
        if not _is_json(texts[-1]):
            del texts[-1]
        for number, text in enumerate(texts, 1):
            if text and (comments or not text.startswith("#")):
                yield Line(number, text)

    def read(self, parse: Callable[[Any], Record]) -> Loaded[Record]:
        """Every record, made by ``parse`` from the value of its line. A line that is not JSON, or that ``parse``
        refuses (with a ``TilewrightError``, ``ValueError``, ``KeyError``, ``TypeError`` or ``IndexError``), is among
        the problems."""
        loaded: Loaded[Record] = Loaded()
        for line in self.lines():
            try:
                loaded.records.append(parse(json.loads(line.text)))
            except (TilewrightError, ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
                reason = (
                    "not JSON" if isinstance(problem, json.JSONDecodeError) else str(problem) or repr(problem)
                )
                loaded.problems.append(Problem(line.number, reason))
        return loaded


@contextmanager
def _locked(number: int) -> Iterator[None]:
    """Keep other appends to an open file out; closing the file, or dying, lets them in again."""
    if fcntl is None:
        yield
        return
    fcntl.flock(number, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(number, fcntl.LOCK_UN)


def _ends_within_a_line(number: int) -> bool:
    size = os.lseek(number, 0, os.SEEK_END)
    if size == 0:
        return False
    os.lseek(number, size - 1, os.SEEK_SET)
    return os.read(number, 1) != b"\n"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
