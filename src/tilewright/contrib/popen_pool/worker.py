"""The other side of a ``PopenWorker``: receives a function with arguments, says that it starts, calls it, answers."""

from __future__ import annotations

import os
import sys
import traceback

from tilewright.contrib.popen_pool.messages import packed, read_frame, unpacked, write_frame

STARTED, DONE, RAISED = 0, 1, 2


def _answer(content: bytes, out: int) -> bytes:
    try:
        function, args, kwargs = unpacked(content)
        with os.fdopen(os.dup(out), "wb") as stream:
            write_frame(stream, packed((STARTED, None)))
        return packed((DONE, function(*args, **kwargs)))
    except Exception as problem:  # noqa: BLE001 - it is the answer
        problem.add_note(f"in the worker process:\n{traceback.format_exc()}")
        try:
            return packed((RAISED, problem))
        except Exception:  # noqa: BLE001 - pickling runs code of the exception's class
            # An exception that cannot travel: its text can.
            return packed((RAISED, RuntimeError(f"{type(problem).__name__}: {problem}")))


def serve(incoming: int, outgoing: int, path: list[str]) -> None:
    """Does jobs until the other end leaves."""
    sys.path[:] = path
    with os.fdopen(outgoing, "wb") as stream:
        while True:
            try:
                content = read_frame(lambda size: os.read(incoming, size))
            except EOFError:
                return
            write_frame(stream, _answer(content, outgoing))
