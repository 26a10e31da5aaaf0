"""Messages in the words of whoever called: flags on the command line, arguments in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ON_THE_COMMAND_LINE: ContextVar[bool] = ContextVar("on_the_command_line", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """What is called in the block was called from the command line."""
    before = _ON_THE_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_THE_COMMAND_LINE.reset(before)


def in_words_of_the_caller(flag: str, argument: str) -> str:
    """``flag`` on the command line, ``argument`` in Python."""
    return flag if _ON_THE_COMMAND_LINE.get() else argument
