"""Bridges to external tools and libraries: compilers and linkers, other tensor libraries, worker processes, the
runtime's own random numbers and sorting, pictures of schedules, downloads, temporary files."""

import importlib
from typing import Any

_MODULES = (
    "cblas",
    "cc",
    "clang",
    "cublas",
    "cublaslt",
    "cudnn",
    "debugger",
    "dlpack",
    "download",
    "emcc",
    "graph_executor",
    "mkl",
    "mkldnn",
    "ndk",
    "nvcc",
    "pickle_memoize",
    "popen_pool",
    "random",
    "sort",
    "sparse",
    "tar",
    "tedd",
    "thrust",
    "utils",
    "xcode",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
