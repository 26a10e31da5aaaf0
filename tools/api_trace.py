"""Which names of TVM's interface a test run calls: ``pytest --api-trace FILE``.

Each function behind a listed name gets the code of a stand-in, whose first call notes the name, gives the function its
own code back and calls it; every later call runs as without a trace. A class without code of its own (an exception, a
node that only names its base's fields) is noted when an object of it is made, a class of constants when one of them is
read. Each process of ``pytest -n`` adds the names that were called to the file.
"""

from __future__ import annotations

import functools
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
        # A class is used when any code of its own runs or, where it has none, when an object of it is made.
        yield from _own_functions(found) or _constructors_below(found)
        return
    while found is not None:
        if isinstance(found, FunctionType):
            yield found
        found = getattr(found, "__wrapped__", None)


def _own_functions(owner: type) -> list[FunctionType]:
    """The methods and the getters of properties that a class itself writes."""
    members: list[Any] = [getattr(one, "__func__", one) for one in vars(owner).values()]
    getters = [one.fget for one in members if isinstance(one, property)]
    return [one for one in (*members, *getters) if isinstance(one, FunctionType)]


def _constructors_below(base: type) -> Iterator[FunctionType]:
    """The constructors that the classes derived from one write: what they make is an object of the base too."""
    derived: list[type] = base.__subclasses__()
    for one in derived:
        constructor = vars(one).get("__init__")
        if isinstance(constructor, FunctionType):
            yield constructor
        yield from _constructors_below(one)


def _bare_class(entry: Entry) -> type | None:
    """The class of the name, where neither it nor a class below it has code that runs when one is made: a base of the
    package's own or of Python's makes its objects."""
    found = find(entry)
    if not inspect.isclass(found) or found.__module__.split(".")[0] != "tilewright" or _own_functions(found):
        return None
    is_abstract = found.__init__ is object.__init__ and next(_constructors_below(found), None) is not None
    return None if is_abstract else found


class _Constant:
    """In the place of a constant of a class: calls ``first_read`` when it is read."""

    def __init__(self, value: Any, first_read: Callable[[], None]) -> None:
        self.value = value
        self.first_read = first_read

    def __get__(self, instance: object, owner: type) -> Any:
        self.first_read()
        return self.value


class _WatchedClass:
    """A class without code of its own: notes that an object of it is made or a constant of it read."""

    def __init__(self, watched: type, note: Callable[[], None]) -> None:
        self.watched = watched
        self.note = note
        self.put: dict[str, Any] = {}
        self.before: dict[str, Any] = {}

    def start(self) -> None:
        """Put a constructor into the class, and watched values in the place of its constants."""
        watched: Any = self.watched

        @functools.wraps(watched.__init__)
        def constructor(made: Any, *arguments: Any, **keywords: Any) -> None:
            self._first_use()
            super(watched, made).__init__(*arguments, **keywords)

        if watched.__init__ is object.__init__ and type(watched) is type:
            for name, value in vars(watched).items():
                if not name.startswith("_") and not hasattr(value, "__get__"):
                    self.before[name] = value
                    self.put[name] = _Constant(value, self._first_use)
        self.put["__init__"] = constructor
        for name, value in self.put.items():
            setattr(watched, name, value)

    def _first_use(self) -> None:
        self.note()
        self.stop()

    def stop(self) -> None:
        """Leave the class as it was."""
        while self.put:
            name, put = self.put.popitem()
            if vars(self.watched).get(name) is not put:
                continue  # A program assigned something else in the meantime.
            if name in self.before:
                setattr(self.watched, name, self.before[name])
            else:
                delattr(self.watched, name)


class Trace:
    """The names that are still to be called, by the functions that run then."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.waiting: dict[FunctionType, list[str]] = {}
        self.codes: dict[FunctionType, CodeType] = {}
        bare: dict[type, list[str]] = {}
        for entry in read_listing(LISTING.read_text()):
            used = entry
            functions = list(_functions(used))
            if not functions and entry.owner and find(entry) is not ABSENT:
                # A plain field: it is used with its class.
                used = Entry(entry.section, "", entry.owner, None)
                functions = list(_functions(used))
            for function in functions:
                self.waiting.setdefault(function, []).append(entry.path)
            watched = _bare_class(used)
            if watched is not None:
                bare.setdefault(watched, []).append(entry.path)
        self.classes = [_WatchedClass(one, partial(self.called.update, paths)) for one, paths in bare.items()]

    def start(self) -> None:
        """Watch from now on."""
        for function in self.waiting:
            self.codes[function] = function.__code__
            signature = inspect.signature(function)
            function.__code__ = _stand_in(function.__code__, partial(self._first_call, function))
            # What asks for parameters (decorators, documentation) sees the function's own, not the stand-in's.
            function.__dict__.setdefault("__signature__", signature)
        for watched in self.classes:
            watched.start()

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
        for watched in self.classes:
            watched.stop()
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
