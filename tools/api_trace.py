"""Which names of TVM's interface a test run calls: ``pytest --api-trace FILE``.

Each function behind a listed name gets the code of a stand-in, whose first call notes the name, gives the function its
own code back and calls it; every later call runs as without a trace. Each process of ``pytest -n`` adds the names that
were called to the file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
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
    """The names that are still to be called, by the functions that run then."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.waiting: dict[FunctionType, list[str]] = {}
        self.codes: dict[FunctionType, CodeType] = {}
        for entry in read_listing(LISTING.read_text()):
            functions = list(_functions(entry))
            if not functions and entry.owner and find(entry) is not ABSENT:
                # A plain field: it is used with its class.
                functions = list(_functions(Entry(entry.section, "", entry.owner, None)))
            for function in functions:
                self.waiting.setdefault(function, []).append(entry.path)

    def start(self) -> None:
        """Watch from now on."""
        for function in self.waiting:
            self.codes[function] = function.__code__
            signature = inspect.signature(function)
            function.__code__ = _stand_in(function.__code__, partial(self._first_call, function))
            # What asks for parameters (decorators, documentation) sees the function's own, not the stand-in's.
            function.__dict__.setdefault("__signature__", signature)

    def _first_call(self, function: FunctionType, /, *arguments: Any, **keywords: Any) -> Any:
        self.called.update(self.waiting[function])
        self._restore(function)
        return function(*arguments, **keywords)

    def _restore(self, function: FunctionType) -> None:
        # Another thread may have restored it between the call and here.
        code = self.codes.pop(function, None)
        if code is not None:
            function.__code__ = code
            function.__dict__.pop("__signature__", None)

    def stop(self, file: Path) -> None:
        """Watch no longer, and add the names to the file."""
        for function in list(self.codes):
            self._restore(function)
        with file.open("a") as names:
            # One write, at the end of the file wherever that is by then: processes do not overwrite each other's.
            names.write("".join(f"{name}\n" for name in sorted(self.called)))


_FIRST_CALL = "the first call"
"""Where the code of a stand-in has this constant, it gets the function that it calls."""


def _stand_in(code: CodeType, first_call: Callable[..., Any]) -> CodeType:
    """Code that calls ``first_call`` with its arguments and can take the place of ``code``: in its file and line, and
    with as many variables closed over, which is what Python asks of a function's code."""
    closed = ", ".join(f"closed_{place}" for place in range(len(code.co_freevars)))
    source = f"""
def surrounding({closed}):
    def stand_in(*arguments, **keywords):
        if 0: {closed or "pass"}
        first_call = {_FIRST_CALL!r}
        return first_call(*arguments, **keywords)
    return stand_in
"""
    namespace: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), namespace)
    made: CodeType = namespace["surrounding"](*code.co_freevars).__code__
    return made.replace(
        co_consts=tuple(first_call if one == _FIRST_CALL else one for one in made.co_consts),
        co_name=code.co_name,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
