"""A matrix product as fast as a BLAS, scheduled by hand with public primitives.

Run it:  python examples/gemm.py [size]

The plan is that of Goto and van de Geijn. A register tile of ``rows x columns`` accumulators is held in vector
registers while a loop over ``depth`` steps multiplies one column of A by one row of B. Both operands are packed
first, in the order in which that loop reads them. A panel of B (``depth x columns``) stays in the first cache
while all panels of A, which fit in the second, pass by it.
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
    """The sizes that the schedule needs, all in elements."""

    rows: int
    columns: int
    depth: int
    lanes: int


def choose_tiles(cpu: CPUDescription) -> Tiles:
    """As many accumulators as there are registers, less two for B and one for A; a panel of B in half of the
    first cache."""
    lanes = cpu.lanes(32)
    columns = 2 * lanes
    rows = min(max((cpu.vector_registers - 3) // 2, 1), 14)
    depth = max(64, (cpu.l1d_bytes * 2 // 3) // (4 * columns) // 64 * 64)
    return Tiles(rows, columns, depth, lanes)


def matrix_product(
    m: int, n: int, k: int, tiles: Tiles, threads: int = 1
) -> tuple[te.Schedule, list[te.Tensor]]:
    """``C = A @ B`` for float32 matrices of ``m x k`` and ``k x n``: its schedule and its arguments."""
    rows, columns = tiles.rows, tiles.columns
    row_panels, column_panels = -(-m // rows), -(-n // columns)
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    packed_a = te.compute(
        (row_panels, k, rows),
        lambda panel, r, i: te.if_then_else(panel * rows + i < m, a[panel * rows + i, r], 0.0),
        name="packed_A",
    )
    packed_b = te.compute(
        (column_panels, k, columns),
        lambda panel, r, j: te.if_then_else(panel * columns + j < n, b[r, panel * columns + j], 0.0),
        name="packed_B",
    )
    r = te.reduce_axis((0, k), name="r")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            packed_a[i // rows, r, i % rows] * packed_b[j // columns, r, j % columns], axis=r
        ),
        name="C",
    )

    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    i_panel, i_inner = s[c].split(i, factor=rows)
    j_panel, j_inner = s[c].split(j, factor=columns)
    r_block, r_inner = s[c].split(r, factor=tiles.depth)
    if threads > 1:
        part, j_panel = s[c].split(j_panel, nparts=threads)
        s[c].reorder(part, r_block, j_panel, i_panel, r_inner, i_inner, j_inner)
        s[c].parallel(part)
    else:
        s[c].reorder(r_block, j_panel, i_panel, r_inner, i_inner, j_inner)
    s[c].unroll(i_inner)
    s[c].vectorize(j_inner)

    panel, _, lane = s[packed_b].op.axis
    s[packed_b].vectorize(lane)
    panel_a, _, row = s[packed_a].op.axis
    s[packed_a].unroll(row)
    if threads > 1:
        s[packed_b].parallel(panel)
        s[packed_a].parallel(panel_a)
    return s, [a, b, c]


def build(m: int, n: int, k: int, threads: int = 1, target: str = "llvm") -> Any:
    """The compiled product, as a function of A, B and C."""
    schedule, arguments = matrix_product(m, n, k, choose_tiles(describe_cpu(target)), threads)
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
