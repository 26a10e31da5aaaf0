"""Computations that states are tried on."""

from __future__ import annotations

from tilewright import te
from tilewright.te.tensor import Tensor


def matmul(rows: int = 8, columns: int = 16, depth: int = 12) -> list[Tensor]:
    """A product whose second operand may have any layout."""
    a = te.placeholder((rows, depth), name="A")
    b = te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    return [a, b, c]


def matmul_relu(rows: int = 8, columns: int = 16, depth: int = 12) -> list[Tensor]:
    """A product with an elementwise tail."""
    a, b, c = matmul(rows, columns, depth)
    d = te.compute((rows, columns), lambda i, j: c[i, j] + 1.0, name="D")
    e = te.compute((rows, columns), lambda i, j: d[i, j] * 2.0, name="E")
    return [a, b, e]
