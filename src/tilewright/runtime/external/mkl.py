"""Intel's MKL, where it is installed: matrix products as packed functions, which are registered where there is one.

``pip install mkl`` brings ``libmkl_rt``; it is looked for where wheels put libraries, and by the system's loader.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_double, c_float, c_int, c_int8, c_void_p
from functools import cache
from pathlib import Path

from tilewright.runtime.external.openblas import product
from tilewright.runtime.external.shared_library import find_library, load_library
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func

_NAMES = (
    *("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"),
    *("libmkl_rt.2.dylib", "mkl_rt.2.dll"),
)
_ROW_MAJOR, _PLAIN, _TRANSPOSED, _FIXED_OFFSET = 101, 111, 112, 173
_SCALARS = {"float32": ("s", c_float), "float64": ("d", c_double)}


def library_path() -> Path | None:
    """Where the library is; None where there is none."""
    root = os.environ.get("MKLROOT")
    return find_library(_NAMES, [Path(root) / "lib"] if root else [])


@cache
def library() -> ctypes.CDLL:
    """The library; an error that says what to install where there is none."""
    path = library_path()
    if path is None:
        raise failure("OSError", "MKL was not found: pip install mkl installs it")
    # The layer that chooses the kind of threads is loaded by the library itself, from its own folder.
    os.environ.setdefault("MKL_THREADING_LAYER", "SEQUENTIAL")
    return load_library(path)


def gemm(
    dtype: str, left: int, right: int, result: int, sizes: tuple[int, int, int], flags: tuple[bool, bool]
) -> None:
    """result = left @ right in row-major order, of float32 or float64."""
    letter, scalar = _SCALARS[dtype]
    rows, columns, inner = sizes
    getattr(library(), f"cblas_{letter}gemm")(
        *(c_int(_ROW_MAJOR), *(c_int(_TRANSPOSED if flag else _PLAIN) for flag in flags)),
        *(c_int(rows), c_int(columns), c_int(inner), scalar(1)),
        *(c_void_p(left), c_int(rows if flags[0] else inner)),
        *(c_void_p(right), c_int(inner if flags[1] else columns)),
        *(scalar(0), c_void_p(result), c_int(columns)),
    )


def matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of two matrices, or of each two of two rows of matrices."""
    product(left, right, result, (bool(transa), bool(transb)), gemm, "MKL")


def matmul_u8s8s32(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of a matrix of uint8 and one of int8, in int32."""
    kinds = tuple(str(one.dtype) for one in (left, right, result))
    if kinds != ("uint8", "int8", "int32"):
        raise failure(
            "TypeError", f"MKL multiplies uint8 by int8 to int32, not {kinds[0]} by {kinds[1]} to {kinds[2]}"
        )
    rows, columns = result.shape
    inner = left.shape[0] if transa else left.shape[1]
    offset = ctypes.c_int32(0)
    library().cblas_gemm_s8u8s32(
        *(c_int(_ROW_MAJOR), *(c_int(_TRANSPOSED if flag else _PLAIN) for flag in (transa, transb))),
        *(c_int(_FIXED_OFFSET), c_int(rows), c_int(columns), c_int(inner), c_float(1)),
        *(c_void_p(left.memory_range().start), c_int(rows if transa else inner), c_int8(0)),
        *(c_void_p(right.memory_range().start), c_int(inner if transb else columns), c_int8(0)),
        *(c_float(0), c_void_p(result.memory_range().start), c_int(columns), ctypes.byref(offset)),
    )


if library_path() is not None:
    for _name in ("matmul", "batch_matmul", "batch_matmul_iterative"):
        register_func(f"tvm.contrib.mkl.{_name}", matmul)
    register_func("tvm.contrib.mkl.matmul_u8s8s32", matmul_u8s8s32)
