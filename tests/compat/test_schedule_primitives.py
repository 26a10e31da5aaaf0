"""Each primitive with the loops it gives, as a tutorial on them shows."""

from __future__ import annotations

import numpy as np

import tilewright as tvm
from tilewright import te

n, m = te.var("n"), te.var("m")


def loops(s: te.Schedule, arguments: list[te.Tensor]) -> list[tuple[str, str]]:
    """Names and extents of the loops, outermost first, in the order they are written."""
    found: list[tuple[str, str]] = []

    def visit(node: object) -> None:
        if isinstance(node, tvm.tir.For):
            found.append((node.loop_var.name, str(node.extent)))

    module = tvm.lower(s, arguments, simple_mode=True)
    ordered: list[object] = []
    tvm.tir.stmt_functor.post_order_visit(module["main"].body, ordered.append)
    for node in reversed(ordered):
        visit(node)
    return found


def vector() -> tuple[te.Tensor, te.Tensor]:
    """A vector and its double."""
    a = te.placeholder((m,), name="A")
    return a, te.compute((m,), lambda i: a[i] * 2, name="B")


def test_rows_and_columns() -> None:
    """The default schedule nests the axes in order."""
    a, b = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="B")
    c = te.compute((m, n), lambda i, j: a[i, j] * b[i, j], name="C")
    assert [name for name, _ in loops(te.create_schedule([c.op]), [a, b, c])] == ["i", "j"]


def test_split_by_factor() -> None:
    """The inner loop has the factor's extent, the outer the rest, rounded up."""
    a, b = vector()
    s = te.create_schedule(b.op)
    xo, xi = s[b].split(b.op.axis[0], factor=32)
    assert loops(s, [a, b])[1][1] == "32"
    assert s[b].leaf_iter_vars[0] == xo and s[b].leaf_iter_vars[1] == xi


def test_split_by_number() -> None:
    """The outer loop has the number of parts."""
    a, b = vector()
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], nparts=32)
    assert loops(s, [a, b])[0][1] == "32"


def test_tile_fuse_reorder() -> None:
    """Tiles, then two loops fused, then the order changed."""
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda i, j: a[i, j], name="B")
    s = te.create_schedule(b.op)
    xo, yo, xi, yi = s[b].tile(b.op.axis[0], b.op.axis[1], x_factor=10, y_factor=5)
    assert [extent for _, extent in loops(s, [a, b])[2:]] == ["10", "5"]
    fused = s[b].fuse(xi, yi)
    assert loops(s, [a, b])[-1][1] == "50"
    s[b].reorder(fused, yo, xo)
    assert loops(s, [a, b])[0] == (fused.var.name, "50")


def test_compute_at_root_and_inline() -> None:
    """A producer at its reader's loop, back at the root, and inside of the expression."""
    a = te.placeholder((m,), name="A")
    b = te.compute((m,), lambda i: a[i] + 1, name="B")
    c = te.compute((m,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    assert len(loops(s, [a, b, c])) == 2
    s[b].compute_at(s[c], c.op.axis[0])
    assert len(loops(s, [a, b, c])) == 1
    s[b].compute_root()
    assert len(loops(s, [a, b, c])) == 2
    s[b].compute_inline()
    assert len(loops(s, [a, b, c])) == 1
    values, result = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    tvm.build(s, [a, c], "llvm")(values, result)
    assert result.tolist() == [2, 4, 6, 8, 10]
