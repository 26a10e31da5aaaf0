"""Matrix products by OpenBLAS in tensor expressions; ``pip install 'tilewright[openblas]'`` installs the library."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.tir import call_packed


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices as an external operation; ``kwargs`` are further arguments of ``te.extern``."""
    rows = lhs.shape[1] if transa else lhs.shape[0]
    columns = rhs.shape[0] if transb else rhs.shape[1]
    return _product("matmul", (rows, columns), lhs, rhs, transa, transb, kwargs)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The products of two rows of matrices; ``iterative`` is accepted, and one call for each is made anyway."""
    batch = rhs.shape[0] if getattr(lhs.shape[0], "value", None) == 1 else lhs.shape[0]
    rows = lhs.shape[2] if transa else lhs.shape[1]
    columns = rhs.shape[1] if transb else rhs.shape[2]
    name = "batch_matmul_iterative" if iterative else "batch_matmul"
    return _product(name, (batch, rows, columns), lhs, rhs, transa, transb, kwargs)


def _product(
    name: str, shape: Any, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, more: dict[str, Any]
) -> te.Tensor:
    more = {"name": "C", **more}
    made: te.Tensor = te.extern(
        shape,
        [lhs, rhs],
        lambda ins, outs: call_packed(
            f"tvm.contrib.cblas.{name}", ins[0], ins[1], outs[0], int(transa), int(transb)
        ),
        **more,
    )
    return made
