"""Matrix products of oneDNN as a packed function: ``tvm.contrib.mkldnn.matmul``, the name that it has in TVM."""

from __future__ import annotations

from ctypes import c_char, c_float, c_int64, c_void_p

from tilewright.runtime.external.onednn.library import library
from tilewright.runtime.external.openblas import product
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import register_func


def gemm(
    dtype: str, left: int, right: int, result: int, sizes: tuple[int, int, int], flags: tuple[bool, bool]
) -> None:
    """result = left @ right in row-major order."""
    if dtype != "float32":
        raise failure("TypeError", f"oneDNN's product is of float32, not {dtype}")
    rows, columns, inner = sizes
    library().call(
        "sgemm",
        *(c_char(b"T" if flag else b"N") for flag in flags),
        *(c_int64(rows), c_int64(columns), c_int64(inner), c_float(1)),
        *(c_void_p(left), c_int64(rows if flags[0] else inner)),
        *(c_void_p(right), c_int64(inner if flags[1] else columns)),
        *(c_float(0), c_void_p(result), c_int64(columns)),
    )


@register_func("tvm.contrib.mkldnn.matmul")
def matmul(
    left: NDArray, right: NDArray, result: NDArray, transa: bool = False, transb: bool = False
) -> None:
    """The product of two matrices."""
    product(left, right, result, (bool(transa), bool(transb)), gemm, "oneDNN")
