"""Ctrl-C during a run: C code asks whether a signal has arrived, which only Python can answer: between two kernels, and
between two tasks of a parallel loop.

A loop that is not parallel runs to its end, and what a handler raised is raised then. Python runs the handlers of
signals on its main thread only, so only runs on that thread are interrupted.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Iterator

from tilewright.runtime.failure import keep_exception
from tilewright.runtime.library import LIBRARY


def _answers() -> Iterator[int]:
    """0 to continue, -1 if a handler raised an exception.

    Handlers run when Python code continues: here, right after the yield. In a function, they would run at its very
    start, before any ``try`` of it, and C code would lose the exception.
    """
    status = 0
    while True:
        try:
            yield status
            status = 0
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - it continues after the C code
            keep_exception(error)
            status = -1


_ANSWERS = _answers()
next(_ANSWERS)
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32)(_ANSWERS.__next__)

if threading.current_thread() is threading.main_thread():
    LIBRARY.tilewright_set_interrupt_check(_CALLBACK)
    # The callback is gone with the interpreter, and what still runs then must not call it.
    atexit.register(LIBRARY.tilewright_set_interrupt_check, None)
