"""A matrix product as fast as a BLAS, scheduled by hand with public primitives.

Run it:  python examples/gemm.py [size]

A register tile of ``rows x columns`` accumulators stays in vector registers over the whole reduction: each step
multiplies a column of A, one element per row, by a row of B. B is packed in panels of ``columns``, in the order in
which that loop reads them. A few panels are packed at a time, as many as fit in L2, and all rows of A pass over them:
each tile of rows meets every panel of the group while it is still in the cache.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.target.cpu import CPUDescription, describe_cpu


@dataclass(frozen=True)
class Tiles:
    """The size of the register tile, in elements, and how many panels of B are packed at a time."""

    rows: int
    columns: int
    panels: int


def choose_tiles(cpu: CPUDescription, depth: int) -> Tiles:
    """Accumulators in all vector registers but those for a row of B and an element of A; panels in half of the second
    cache.

    That is six rows by four vectors of 32 registers, or by two of 16: a step loads ten vectors for 24 products, or
    eight for 12. Tiles of more rows would do too, but every row of A is a separate stream through the caches.
    """
    vectors = max(cpu.vector_registers // 8, 1)
    columns = vectors * cpu.lanes(32)
    panels = cpu.l2_bytes // 2 // (4 * columns * depth)
    rows = (cpu.vector_registers - vectors - 1) // vectors
    return Tiles(rows=rows, columns=columns, panels=min(max(panels, 1), 4))


def matrix_product(
    m: int, n: int, k: int, tiles: Tiles, parallel: bool = False
) -> tuple[te.Schedule, list[te.Tensor]]:
    """``C = A @ B`` for float32 matrices of ``m x k`` and ``k x n``: its schedule and its arguments."""
    columns = tiles.columns
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    packed = te.compute(
        (-(-n // columns), k, columns),
        lambda panel, r, j: te.if_then_else(panel * columns + j < n, b[r, panel * columns + j], 0.0),
        name="packed",
    )
    r = te.reduce_axis((0, k), name="r")
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, r] * packed[j // columns, r, j % columns], axis=r), name="C"
    )

    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    row_tile, i = s[c].split(i, factor=tiles.rows)
    panel, j = s[c].split(j, factor=columns)
    group, panel = s[c].split(panel, factor=tiles.panels)
    r, step = s[c].split(r, factor=4)
    s[c].reorder(group, row_tile, panel, r, step, i, j)
    s[c].unroll(step)
    s[c].unroll(i)
    s[c].vectorize(j)
    if parallel:
        s[c].parallel(group)
    s[packed].compute_at(s[c], group)
    s[packed].vectorize(s[packed].op.axis[2])
    return s, [a, b, c]


def build(m: int, n: int, k: int, parallel: bool = False, target: str = "llvm") -> Any:
    """The compiled product, as a function of A, B and C."""
    schedule, arguments = matrix_product(m, n, k, choose_tiles(describe_cpu(target), k), parallel)
    return tvm.build(schedule, arguments, target, name="gemm")


def main(size: int = 1024) -> None:
    """Build, check against NumPy and time."""
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal((size, size), dtype="float32") for _ in range(2))
    product = build(size, size, size)
    a, b = tvm.nd.array(left), tvm.nd.array(right)
    c = tvm.nd.empty((size, size), "float32")
    product(a, b, c)
    np.testing.assert_allclose(c.numpy(), left @ right, rtol=1e-3, atol=1e-2)
    seconds = product.time_evaluator("gemm", tvm.cpu(), number=1, repeat=10)(a, b, c).median
    print(
        f"{size}x{size}x{size}: {seconds * 1e3:.1f} ms, {2 * size**3 / seconds / 1e9:.0f} GFLOP/s on one thread"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
