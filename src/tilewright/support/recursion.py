"""Room for deep recursion.

CPython keeps frames of pure-Python calls on the heap, so deep recursion is safe as long as it never passes through C;
only the interpreter's recursion limit prevents it. Passes that recurse over expressions or statements run inside
``recursion_room``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

_DEPTH = 1_000_000
_lock = threading.Lock()
_holders = 0
_saved = 0

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def recursion_room() -> Iterator[None]:
    """Within the block, pure-Python recursion may go a million frames deep. Nests, and is safe across threads."""
    global _holders, _saved
    with _lock:
        if _holders == 0:
            _saved = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_saved, _DEPTH))
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                sys.setrecursionlimit(_saved)


def with_recursion_room(function: Callable[P, R]) -> Callable[P, R]:
    """The function runs inside ``recursion_room``. For entry points of passes, not for the recursion itself."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with recursion_room():
            return function(*args, **kwargs)

    return inside
