"""Matrix products by cuBLASLt in tensor expressions, for arrays on an NVIDIA GPU."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.tir import call_packed


def matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    n: int = 0,
    m: int = 0,
    dtype: Any = None,
) -> te.Tensor:
    """The product of two matrices as an external operation.

    The result has the type ``dtype``, or that of ``lhs``, and the shape (n, m), where they are given: products of int8
    to int32 have packed layouts, in which the shape of the result is another one.
    """
    rows = n if n else (lhs.shape[1] if transa else lhs.shape[0])
    columns = m if m else (rhs.shape[0] if transb else rhs.shape[1])
    made: te.Tensor = te.extern(
        (rows, columns),
        [lhs, rhs],
        lambda ins, outs: call_packed(
            "tvm.contrib.cublaslt.matmul", ins[0], ins[1], outs[0], int(transa), int(transb)
        ),
        dtype=str(dtype) if dtype is not None else str(lhs.dtype),
        name="matmul_cublaslt",
    )
    return made
