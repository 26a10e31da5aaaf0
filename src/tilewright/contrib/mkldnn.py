"""Matrix products by oneDNN, which was called MKL-DNN, in tensor expressions; ``pip install 'tilewright[onednn]'``
installs the library."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.contrib.extern_products import matmul_by


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two float32 matrices as an external operation; ``kwargs`` are arguments of ``te.extern``."""
    return matmul_by("tvm.contrib.mkldnn.matmul", lhs, rhs, transa, transb, kwargs)
