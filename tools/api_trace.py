"""Which names of TVM's interface a test run calls: ``pytest --api-trace FILE``.

Only the functions behind the listed names are monitored, each until it is called: on Python 3.12 and later by events of
those code objects, before that by a profile function. Each process of ``pytest -n`` adds the names that were called to
the file.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from api_coverage import ABSENT, LISTING, Entry, find, read_listing


def _functions(entry: Entry) -> Iterator[FunctionType]:
    """The Python functions that run when the name is used: itself, a property's, a class's own methods."""
    found = find(entry)
    if found is ABSENT:
        return
    if isinstance(found, property):
        found = found.fget
    if inspect.isclass(found):
        # A class is used when one is made, or, where that runs no code of its own, when one of its attributes is read.
        members = (getattr(one, "__func__", one) for one in vars(found).values())
        yield from (one for one in members if isinstance(one, FunctionType))
        return
    while found is not None:
        if isinstance(found, FunctionType):
            yield found
        found = getattr(found, "__wrapped__", None)


class Trace:
    """The names that are still to be called, by the code that they run."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.waiting: dict[CodeType, list[tuple[str, FunctionType]]] = {}
        for entry in read_listing(LISTING.read_text()):
            functions = list(_functions(entry))
            if not functions and entry.owner and find(entry) is not ABSENT:
                # A plain field: it is used with its class.
                functions = list(_functions(Entry(entry.section, "", entry.owner, None)))
            for function in functions:
                self.waiting.setdefault(function.__code__, []).append((entry.path, function))

    def note(self, code: CodeType, frame: FrameType) -> bool:
        """Code begins to run; True if nothing more is to be learned from it."""
        waiting = self.waiting.get(code)
        if waiting is None:
            return True
        left = []
        for path, function in waiting:
            if _is_running(function, frame):
                self.called.add(path)
            else:
                left.append((path, function))
        if left:
            self.waiting[code] = left
        else:
            del self.waiting[code]
        return not left

    def start(self) -> None:
        """Watch from now on."""
        if sys.version_info >= (3, 12):
            events = sys.monitoring
            events.use_tool_id(events.PROFILER_ID, "api-trace")
            events.register_callback(events.PROFILER_ID, events.events.PY_START, self._started)
            for code in self.waiting:
                events.set_local_events(events.PROFILER_ID, code, events.events.PY_START)
        else:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def _started(self, code: CodeType, offset: int) -> Any:
        # A callback of sys.monitoring: two frames up, past this one, is what was called.
        return sys.monitoring.DISABLE if self.note(code, sys._getframe(1)) else None  # type: ignore[attr-defined]

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in self.waiting:
            self.note(frame.f_code, frame)

    def stop(self, file: Path) -> None:
        """Watch no longer, and add the names to the file."""
        if sys.version_info >= (3, 12):
            sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
        else:
            sys.setprofile(None)
            threading.setprofile(None)
        with file.open("a") as names:
            # One write, at the end of the file wherever that is by then: processes do not overwrite each other's.
            names.write("".join(f"{name}\n" for name in sorted(self.called)))


def _is_running(function: FunctionType, frame: FrameType) -> bool:
    """True if the frame runs this function: those of one factory share their code, not what they close over."""
    names = function.__code__.co_freevars
    if not names:
        return True
    values = frame.f_locals
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            wanted = cell.cell_contents
        except ValueError:
            continue
        if values.get(name, wanted) is not wanted:
            return False
    return True
