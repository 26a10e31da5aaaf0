"""Matrix products by cuBLAS in tensor expressions, for arrays on an NVIDIA GPU."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.tir import call_packed


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, dtype: Any = None
) -> te.Tensor:
    """The product of two matrices as an external operation; the result has the type ``dtype``, or that of ``lhs``."""
    rows = lhs.shape[1] if transa else lhs.shape[0]
    columns = rhs.shape[0] if transb else rhs.shape[1]
    return _product("matmul", (rows, columns), lhs, rhs, transa, transb, dtype)


def batch_matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, dtype: Any = None
) -> te.Tensor:
    """The products of two rows of matrices as an external operation."""
    rows = lhs.shape[2] if transa else lhs.shape[1]
    columns = rhs.shape[1] if transb else rhs.shape[2]
    return _product("batch_matmul", (lhs.shape[0], rows, columns), lhs, rhs, transa, transb, dtype)


def _product(
    name: str, shape: Any, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, dtype: Any
) -> te.Tensor:
    made: te.Tensor = te.extern(
        shape,
        [lhs, rhs],
        lambda ins, outs: call_packed(
            f"tvm.contrib.cublas.{name}", ins[0], ins[1], outs[0], int(transa), int(transb)
        ),
        dtype=str(dtype) if dtype is not None else str(lhs.dtype),
        name="matmul_cublas",
    )
    return made
