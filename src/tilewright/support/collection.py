"""Fewer searches for garbage while the compiler makes many objects.

Python's collector looks through young objects after every few hundred new ones, and through all of them now and then.
Nodes of programs are made by the hundred thousand, hardly ever in cycles: what is not used any more goes by its count
of references.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar

THRESHOLDS: Final = (50_000, 20, 50)
"""New objects between two searches, searches of the youngest between two of the next older, and of those again."""

_lock = threading.Lock()
_holders = 0
_saved = THRESHOLDS

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def rare_collection() -> Iterator[None]:
    """Within the block, garbage is searched for rarely, if at all. Nests, and is safe across threads."""
    global _holders, _saved
    with _lock:
        if _holders == 0:
            _saved = gc.get_threshold()
            if _saved[0] > 0:
                gc.set_threshold(*(max(one, other) for one, other in zip(_saved, THRESHOLDS, strict=True)))
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                gc.set_threshold(*_saved)


def with_rare_collection(function: Callable[P, R]) -> Callable[P, R]:
    """The function runs inside ``rare_collection``."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with rare_collection():
            return function(*args, **kwargs)

    return inside
