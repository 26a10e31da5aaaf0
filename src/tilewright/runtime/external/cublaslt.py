"""cuBLASLt, loaded where it can be: matrix products of arrays on an NVIDIA GPU, chosen by the library's heuristics.

Products of floating-point matrices take row-major arrays. Products of int8 to int32 take the arrays in the layouts that
the integer units of Turing and later read: the left operand in COL4_4R2_8C, the right one, transposed, in COL32, and
the result, transposed, in COL32, as the function of this name in TVM has it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import Any

from tilewright.runtime.external.cublas import load_nvidia_library
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func

_NAMES = tuple(f"libcublasLt.so.{version}" for version in (13, 12, 11))
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "int8": 3, "int32": 10, "bfloat16": 14}
_COMPUTE = {
    "float32": (68, 0),
    "float64": (70, 1),
    "float16": (68, 0),
    "bfloat16": (68, 0),
    "int32": (72, 10),
}
"""The precision of the sums and the type of the factors, by the type of the result."""
_TRANSA, _TRANSB, _ORDER = 3, 4, 1
"""Attributes of a product, and of a matrix."""
_COLUMN_MAJOR, _COL32, _COL4_4R2_8C = 0, 2, 3


def _check(status: int, doing: str) -> None:
    if status:
        raise failure("RuntimeError", f"cuBLASLt failed with status {status} while {doing}")


@cache
def _library() -> tuple[ctypes.CDLL, c_void_p]:
    """The library, and a handle."""
    made = load_nvidia_library(_NAMES, "cuBLASLt", "nvidia-cublas")
    handle = c_void_p()
    _check(made.cublasLtCreate(ctypes.byref(handle)), "starting: is there an NVIDIA GPU?")
    return made, handle


@contextmanager
def _product(dtype: str, flags: tuple[bool, bool]) -> Iterator[c_void_p]:
    """The description of a product; ``flags`` say which operand is transposed."""
    library, _ = _library()
    made = c_void_p()
    compute, scale = _COMPUTE[dtype]
    _check(
        library.cublasLtMatmulDescCreate(ctypes.byref(made), c_int(compute), c_int(scale)),
        "describing a product",
    )
    try:
        for attribute, flag in zip((_TRANSA, _TRANSB), flags, strict=True):
            value = c_int32(int(flag))
            _check(
                library.cublasLtMatmulDescSetAttribute(
                    made, c_int(attribute), ctypes.byref(value), c_size_t(4)
                ),
                "describing a product",
            )
        yield made
    finally:
        library.cublasLtMatmulDescDestroy(made)


@contextmanager
def _matrix(
    dtype: str, rows: int, columns: int, stride: int, order: int = _COLUMN_MAJOR
) -> Iterator[c_void_p]:
    """The description of a matrix as cuBLASLt sees it; ``stride`` is that of its columns."""
    library, _ = _library()
    made = c_void_p()
    _check(
        library.cublasLtMatrixLayoutCreate(
            *(ctypes.byref(made), c_int(_TYPES[dtype]), c_uint64(rows), c_uint64(columns), c_int64(stride))
        ),
        "describing a matrix",
    )
    try:
        value = c_int32(order)
        _check(
            library.cublasLtMatrixLayoutSetAttribute(made, c_int(_ORDER), ctypes.byref(value), c_size_t(4)),
            "describing a matrix",
        )
        yield made
    finally:
        library.cublasLtMatrixLayoutDestroy(made)


def product(left: NDArray, right: NDArray, result: NDArray, flags: tuple[bool, bool]) -> None:
    """result = left @ right."""
    for one in (left, right, result):
        if one.device.device_type != 2:
            raise failure("ValueError", f"cuBLASLt multiplies arrays on an NVIDIA GPU, not on {one.device}")
        if len(one.shape) != 2:
            raise failure("ValueError", f"cuBLASLt multiplies matrices, not an array of shape {one.shape}")
    given, made = str(left.dtype), str(result.dtype)
    is_integer = (given, made) == ("int8", "int32")
    if str(right.dtype) != given or not (
        is_integer or (given == made and made in _COMPUTE and made != "int32")
    ):
        raise failure("TypeError", f"cuBLASLt has no product of {given} and {right.dtype} to {made}")
    if is_integer and flags != (False, True):
        raise failure(
            "ValueError", "cuBLASLt multiplies int8 matrices whose second operand is transposed: transb=True"
        )
    (_integers if is_integer else _numbers)(left, right, result, flags)


def _numbers(left: NDArray, right: NDArray, result: NDArray, flags: tuple[bool, bool]) -> None:
    """Row-major matrices are column-major ones transposed: the product of the transposed in the other order."""
    dtype = str(result.dtype)
    with (
        _product(dtype, (flags[1], flags[0])) as operation,
        _matrix(dtype, right.shape[1], right.shape[0], right.shape[1]) as first,
        _matrix(dtype, left.shape[1], left.shape[0], left.shape[1]) as second,
        _matrix(dtype, result.shape[1], result.shape[0], result.shape[1]) as third,
    ):
        scalar = ctypes.c_double if dtype == "float64" else c_float
        _run(operation, (right, first), (left, second), (result, third), scalar)


def _integers(left: NDArray, right: NDArray, result: NDArray, flags: tuple[bool, bool]) -> None:
    """Matrices in tiles of 32 columns: right @ left.T, of which ``left`` has rows in groups of eight."""
    rows, depth = left.shape
    units = right.shape[0]
    if depth % 32 or rows % 8 or result.shape[1] % 32:
        raise failure(
            "ValueError",
            f"cuBLASLt multiplies int8 matrices of a depth divisible by 32, rows by 8, and rows of the result by 32, "
            f"not {left.shape} by {right.shape} to {result.shape}",
        )
    with (
        _product("int32", flags) as operation,
        _matrix("int8", units, depth, 32 * units, _COL32) as first,
        _matrix("int8", rows, depth, 32 * rows, _COL4_4R2_8C) as second,
        _matrix("int32", units, rows, 32 * units, _COL32) as third,
    ):
        _run(operation, (right, first), (left, second), (result, third), c_int32)


def _run(operation: c_void_p, first: Any, second: Any, result: Any, scalar: Any) -> None:
    library, handle = _library()
    one, zero = scalar(1), scalar(0)
    operands = [(c_void_p(array.memory_range().start), layout) for array, layout in (first, second, result)]
    _check(
        library.cublasLtMatmul(
            *(handle, operation, ctypes.byref(one), *operands[0], *operands[1], ctypes.byref(zero)),
            *(*operands[2], *operands[2]),
            *(
                None,
                None,
                c_size_t(0),
                None,
            ),  # the library's own choice of algorithm, no workspace, the stream 0
        ),
        f"multiplying {second[0].shape} by {first[0].shape}",
    )


@register_func("tvm.contrib.cublaslt.matmul")
def matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of two matrices."""
    product(left, right, result, (bool(transa), bool(transb)))
