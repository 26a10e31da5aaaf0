"""Bridges to tools and libraries outside: compilers and linkers, other tensor libraries, temporary files."""

import importlib
from types import ModuleType

_MODULES = ("cc", "debugger", "dlpack", "graph_executor", "target", "utils")


def __getattr__(name: str) -> ModuleType:
    """A module of this package, loaded when it is first named."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tilewright.contrib' has no attribute {name!r}")
    return importlib.import_module(f"tilewright.contrib.{name}")
