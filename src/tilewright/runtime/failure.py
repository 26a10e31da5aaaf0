"""Errors across the C boundary.

An error in C is a kind, a message and a number. An exception that a Python callback raised is kept here under that
number, so that the very same exception continues on the other side, with its type, message and traceback. Any other
error becomes a ``RuntimeFailure`` that is also an instance of the built-in class its kind names.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict

from tilewright.runtime.library import QUICK
from tilewright.support.errors import REGISTERED, RuntimeFailure, TilewrightError

_BUILTIN_KINDS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AssertionError,
    MemoryError,
    NotImplementedError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    OSError,
    BufferError,
)


def _plain_text(error: BaseException) -> str:
    """The message unchanged: KeyError would quote it."""
    return str(error.args[0]) if error.args else ""


_CLASSES: dict[str, type[RuntimeFailure]] = {
    kind.__name__: type(
        kind.__name__, (RuntimeFailure, kind), {"__module__": __name__, "__str__": _plain_text}
    )
    for kind in _BUILTIN_KINDS
}

_MOST_PENDING = 64
_numbers = itertools.count(1)
_pending: OrderedDict[int, BaseException] = OrderedDict()
_lock = threading.Lock()


def failure_class(kind: str) -> type[RuntimeFailure]:
    """The class raised for errors of a kind: both a ``RuntimeFailure`` and the built-in of that name, if it has one."""
    return _CLASSES.get(kind, RuntimeFailure)


def failure(kind: str, message: str) -> Exception:
    """An error of a kind, ready to raise."""
    if kind in REGISTERED:
        return REGISTERED[kind](message)
    if kind in _CLASSES or kind == "RuntimeError":
        return failure_class(kind)(message)
    return RuntimeFailure(f"{kind}: {message}")


def keep_exception(error: BaseException) -> None:
    """Sets the thread's C error from a Python exception, and remembers the exception for whoever takes the error."""
    number = next(_numbers)
    with _lock:
        _pending[number] = error
        while len(_pending) > _MOST_PENDING:  # errors that C code swallowed
            _pending.popitem(last=False)
    message = error.message if isinstance(error, TilewrightError) else str(error)
    QUICK.tilewright_set_error(
        type(error).__name__.encode(), message.encode(errors="replace").replace(b"\0", b"\\0")
    )
    QUICK.tilewright_set_error_payload(number)


def take_failure() -> BaseException:
    """The exception for the error that C code has just reported on this thread; clears the error."""
    kind, message = QUICK.tilewright_error_kind(), QUICK.tilewright_error_message()
    number = QUICK.tilewright_error_payload()
    QUICK.tilewright_clear_error()
    with _lock:
        original = _pending.pop(number, None)
    if original is not None:
        return original
    if kind is None:
        return RuntimeFailure("a compiled function failed without a message")
    return failure(kind.decode(errors="replace"), message.decode(errors="replace"))


def check(status: int) -> None:
    """Raises the thread's error unless a C function returned success."""
    if status != 0:
        raise take_failure()
