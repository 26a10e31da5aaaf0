"""What goes between a process and its workers: frames of pickled values over a pair of pipes that only the two have.

Functions travel by name where they can be imported. Others (lambdas, functions within functions or typed at a prompt)
travel as their code, with the values that they close over and the globals that they name. Both ends are the same
interpreter, and nothing that did not come from the other end is ever unpickled.
"""

from __future__ import annotations

import builtins
import io
import marshal
import pickle
import struct
import sys
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import IO, Any

_SIZE = struct.Struct("<Q")


def _names_in(code: CodeType) -> set[str]:
    """The globals that code may read, those of functions within it included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*(_names_in(one) for one in inner))


def _is_importable(function: FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    if found is None or function.__module__ == "__main__":
        return False
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def _rebuild_function(
    code: bytes, name: str, module: str, defaults: Any, keywords: Any, closed: Any
) -> FunctionType:
    cells = None if closed is None else tuple(CellType() for _ in range(closed))
    made = FunctionType(
        marshal.loads(code),  # noqa: S302 - from the other end
        {"__builtins__": builtins},
        name,
        defaults,
        cells,
    )
    made.__kwdefaults__ = keywords
    made.__module__ = module
    return made


def _fill_function(function: FunctionType, state: tuple[dict[str, Any], list[Any]]) -> None:
    function.__globals__.update(state[0])
    for cell, value in zip(function.__closure__ or (), state[1], strict=True):
        cell.cell_contents = value


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return __import__, (obj.__name__, None, None, ("",))
        if not isinstance(obj, FunctionType) or _is_importable(obj):
            return NotImplemented
        used = {name: obj.__globals__[name] for name in _names_in(obj.__code__) if name in obj.__globals__}
        closed = [cell.cell_contents for cell in obj.__closure__ or ()]
        made = (
            marshal.dumps(obj.__code__),
            obj.__name__,
            obj.__module__,
            obj.__defaults__,
            obj.__kwdefaults__,
            None if obj.__closure__ is None else len(closed),
        )
        # What the function reads comes after the function: it may name itself.
        return _rebuild_function, made, (used, closed), None, None, _fill_function


def packed(value: Any) -> bytes:
    """A value as bytes for the other end."""
    into = io.BytesIO()
    _Pickler(into, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return into.getvalue()


def unpacked(content: bytes) -> Any:
    """The value that the other end sent."""
    return pickle.loads(content)  # noqa: S301 - only the process at the other end of the pipe writes here


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Sends one message."""
    stream.write(_SIZE.pack(len(content)) + content)
    stream.flush()


def read_frame(read: Callable[[int], bytes]) -> bytes:
    """Receives one message from a function that reads at most so many bytes; ``EOFError`` where the other end has
    left."""
    return _exactly(read, _SIZE.unpack(_exactly(read, _SIZE.size))[0])


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    parts, missing = [], size
    while missing:
        part = read(missing)
        if not part:
            raise EOFError("the other process has ended")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
