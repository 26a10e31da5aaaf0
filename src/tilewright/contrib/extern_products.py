"""Matrix products of libraries in tensor expressions: what ``cblas``, ``mkl`` and ``mkldnn`` have in common."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.tir import call_packed


def matmul_by(
    library: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, more: dict[str, Any]
) -> te.Tensor:
    """The product of two matrices by the registered function ``library``; ``more`` are arguments of ``te.extern``."""
    rows = lhs.shape[1] if transa else lhs.shape[0]
    columns = rhs.shape[0] if transb else rhs.shape[1]
    return _product(library, (rows, columns), lhs, rhs, transa, transb, more)


def batch_matmul_by(
    library: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, more: dict[str, Any]
) -> te.Tensor:
    """The products of two rows of matrices, of which one may have a single one."""
    batch = rhs.shape[0] if getattr(lhs.shape[0], "value", None) == 1 else lhs.shape[0]
    rows = lhs.shape[2] if transa else lhs.shape[1]
    columns = rhs.shape[1] if transb else rhs.shape[2]
    return _product(library, (batch, rows, columns), lhs, rhs, transa, transb, more)


def _product(
    library: str, shape: Any, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, more: dict[str, Any]
) -> te.Tensor:
    made: te.Tensor = te.extern(
        shape,
        [lhs, rhs],
        lambda ins, outs: call_packed(library, ins[0], ins[1], outs[0], int(transa), int(transb)),
        **{"name": "C", **more},
    )
    return made
