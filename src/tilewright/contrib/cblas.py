"""Matrix products by OpenBLAS in tensor expressions; ``pip install 'tilewright[openblas]'`` installs the library."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.contrib.extern_products import batch_matmul_by, matmul_by


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices as an external operation; ``kwargs`` are further arguments of ``te.extern``."""
    return matmul_by("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, kwargs)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The products of two rows of matrices; ``iterative`` is accepted, and one call for each is made anyway."""
    name = "batch_matmul_iterative" if iterative else "batch_matmul"
    return batch_matmul_by(f"tvm.contrib.cblas.{name}", lhs, rhs, transa, transb, kwargs)
