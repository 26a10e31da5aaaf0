"""Bridges to external tools and libraries: compilers and linkers, other tensor libraries, downloads, temporary
files."""

import importlib
from typing import Any

from tilewright.not_yet import attribute_not_there

_MODULES = (
    "cc",
    "clang",
    "debugger",
    "dlpack",
    "download",
    "graph_executor",
    "graph_runtime",
    "nvcc",
    "pickle_memoize",
    "tar",
    "target",
    "utils",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return attribute_not_there(__name__, name)
