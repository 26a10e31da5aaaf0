"""Bridges to tools and libraries outside: compilers and linkers, other tensor libraries, temporary files."""

import importlib
from typing import Any

from tilewright.not_yet import attribute_not_there

_MODULES = ("cc", "debugger", "dlpack", "graph_executor", "target", "utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return attribute_not_there(__name__, name)
