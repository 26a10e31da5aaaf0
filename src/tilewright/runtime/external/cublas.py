"""cuBLAS, loaded where it can be: matrix products of arrays on an NVIDIA GPU as packed functions.

The library is looked for where the system's loader does, and in NVIDIA's wheels (``nvidia-cublas``,
``nvidia-cublas-cu12``). It works on the default stream, as kernels do.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterable
from ctypes import c_float, c_int, c_int32, c_int64, c_longlong, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func
from tilewright.support.errors import RuntimeFailure

_NAMES = tuple(f"libcublas.so.{version}" for version in (13, 12, 11))
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14, "int8": 3, "int32": 10}
_COMPUTE = {"float32": 68, "float64": 70, "float16": 68, "bfloat16": 68, "int32": 72}
"""The precision that sums are taken in, by the type of the result."""
_DEFAULT_ALGORITHM = -1


def load_nvidia_library(names: Iterable[str], what: str, package: str) -> ctypes.CDLL:
    """A library of NVIDIA's; an error that says what to install where it cannot be loaded."""
    folders: list[Path] = []
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        folders += sorted(Path(root).glob("*/lib"))
    said = ""
    for name in names:
        for path in (name, *(str(folder / name) for folder in folders if (folder / name).is_file())):
            try:
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                said = str(error)
    raise failure("OSError", f"{what} cannot be loaded: pip install {package} installs it ({said})")


@cache
def _library() -> tuple[ctypes.CDLL, c_void_p]:
    """The library, and a handle."""
    made = load_nvidia_library(_NAMES, "cuBLAS", "nvidia-cublas")
    handle = c_void_p()
    status = made.cublasCreate_v2(ctypes.byref(handle))
    if status:
        raise failure("RuntimeError", f"cuBLAS cannot start (status {status}): is there an NVIDIA GPU?")
    return made, handle


def is_available() -> bool:
    """True if cuBLAS can be loaded and finds a GPU."""
    try:
        _library()
    except (OSError, RuntimeFailure):
        return False
    return True


def product(left: NDArray, right: NDArray, result: NDArray, flags: tuple[bool, bool]) -> None:
    """result = left @ right of row-major matrices, or of each two of two rows of matrices."""
    for one in (left, right, result):
        if one.device.device_type != 2:
            raise failure("ValueError", f"cuBLAS multiplies arrays on an NVIDIA GPU, not on {one.device}")
    given, made = str(left.dtype), str(result.dtype)
    if given not in _TYPES or made not in _COMPUTE or str(right.dtype) != given:
        raise failure("TypeError", f"cuBLAS has no product of {given} and {right.dtype} to {made}")
    library, handle = _library()
    rows, columns = result.shape[-2:]
    inner = left.shape[-2] if flags[0] else left.shape[-1]
    count = 1
    for extent in result.shape[:-2]:
        count *= extent
    scalar: Any = {"float64": ctypes.c_double, "int32": c_int32}.get(made, c_float)
    steps = [
        0 if len(one.shape) == 2 or one.shape[0] == 1 else one.shape[-1] * one.shape[-2]
        for one in (right, left, result)
    ]
    # Row-major matrices are column-major ones transposed: the product of the transposed in the other order.
    status = library.cublasGemmStridedBatchedEx(
        *(handle, c_int(int(flags[1])), c_int(int(flags[0])), c_int(columns), c_int(rows), c_int(inner)),
        ctypes.byref(scalar(1)),
        *(_address(right), c_int(_TYPES[given]), c_int(inner if flags[1] else columns), c_longlong(steps[0])),
        *(_address(left), c_int(_TYPES[given]), c_int(rows if flags[0] else inner), c_longlong(steps[1])),
        ctypes.byref(scalar(0)),
        *(_address(result), c_int(_TYPES[made]), c_int(columns), c_int64(steps[2])),
        *(c_int(count), c_int(_COMPUTE[made]), c_int(_DEFAULT_ALGORITHM)),
    )
    if status:
        raise failure("RuntimeError", f"cuBLAS failed with status {status} on {left.shape} by {right.shape}")


def _address(array: NDArray) -> c_void_p:
    return c_void_p(array.memory_range().start)


@register_func("tvm.contrib.cublas.matmul")
def matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of two matrices."""
    product(left, right, result, (bool(transa), bool(transb)))


@register_func("tvm.contrib.cublas.batch_matmul")
def batch_matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The products of two rows of matrices."""
    product(left, right, result, (bool(transa), bool(transb)))
