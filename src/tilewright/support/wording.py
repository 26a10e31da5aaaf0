"""Messages in the words of whoever called: options on the command line, arguments in Python.

What the commands call can be called from Python too. A message that names an argument does so through ``argument``:
``executor='vm'`` or ``shape_dict={'x': [1, 4]}`` in Python is ``--executor vm`` or ``--input-shapes "x:[1,4]"`` on the
command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

OPTIONS: Final = {
    "executor": "--executor",
    "interface": "--executor-aot-interface-api",
    "mod_name": "--module-name",
    "model_format": "--model-format",
    "output_format": "-f",
    "package_path": "-o",
    "shape": "--input-shapes",
    "shape_dict": "--input-shapes",
    "tuning_records": "--tuning-records",
}
"""The option for each argument of Python's functions that a message names."""

_ON_THE_COMMAND_LINE: ContextVar[bool] = ContextVar("on_the_command_line", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """What is called in the block was called from the command line."""
    before = _ON_THE_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_THE_COMMAND_LINE.reset(before)


def argument(name: str, value: Any = None) -> str:
    """An argument as the caller would write it: with a value if there is one, otherwise its name. The value is a text,
    or shapes by name, in which None is an unknown size."""
    option = OPTIONS[name]
    if not _ON_THE_COMMAND_LINE.get():
        return name if value is None else f"{name}={value!r}"
    if value is None:
        return option
    if isinstance(value, Mapping):
        return f'{option} "{" ".join(_shape(tensor, sizes) for tensor, sizes in value.items())}"'
    return f"{option} {shlex.quote(str(value))}"


def _shape(tensor: str, sizes: Any) -> str:
    return f"{tensor}:[{','.join('?' if size is None else str(size) for size in sizes)}]"
