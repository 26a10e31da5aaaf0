"""Room for deep recursion.

CPython keeps frames of pure-Python calls on the heap, so deep recursion is safe as long as it never passes through C;
only the interpreter's recursion limit prevents it. Passes that recurse over expressions or statements run inside
``recursion_room``.

A program that replaces the function which evaluates frames (PEP 523; PyTorch's Dynamo does while it compiles) makes
every call pass through C. Inside ``recursion_room`` the interpreter's own function is back.
"""

from __future__ import annotations

import ctypes
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
_saved_evaluator: int | None = None
_interpreter = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", ctypes.pythonapi))
_evaluator = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ("_PyInterpreterState_GetEvalFrameFunc", ctypes.pythonapi)
)

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def recursion_room() -> Iterator[None]:
    """Within the block, pure-Python recursion may go a million frames deep. Nests, and is safe across threads."""
    global _holders, _saved, _saved_evaluator
    with _lock:
        if _holders == 0:
            _saved = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_saved, _DEPTH))
            _saved_evaluator = _set_evaluator(None)
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                sys.setrecursionlimit(_saved)
                if _saved_evaluator is not None:
                    _set_evaluator(_saved_evaluator)


def _set_evaluator(function: int | None) -> int | None:
    """Have frames evaluated by the function at an address, by the interpreter's own where it is None; the address of
    another one that did it until now."""
    if sys.implementation.name != "cpython":
        return None
    api = ctypes.pythonapi
    own = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    interpreter = ctypes.c_void_p(_interpreter())
    before: int | None = _evaluator(interpreter)
    wanted = own if function is None else function
    if before != wanted:
        api._PyInterpreterState_SetEvalFrameFunc(interpreter, ctypes.c_void_p(wanted))
    return None if before == own else before


def with_recursion_room(function: Callable[P, R]) -> Callable[P, R]:
    """The function runs inside ``recursion_room``. For entry points of passes, not for the recursion itself."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with recursion_room():
            return function(*args, **kwargs)

    return inside
