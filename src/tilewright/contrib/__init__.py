"""Bridges to external tools and libraries: compilers and linkers, other tensor libraries, downloads, temporary
files."""

import importlib
from typing import Any

_MODULES = (
    "cblas",
    "cc",
    "clang",
    "cublas",
    "cudnn",
    "debugger",
    "dlpack",
    "download",
    "graph_executor",
    "nvcc",
    "pickle_memoize",
    "tar",
    "utils",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
