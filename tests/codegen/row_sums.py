"""Sums of rows by the threads of blocks: the program whose source in each language the tests look at."""

from __future__ import annotations

from typing import Any

from tilewright import te


def row_sums(kind: str = "float32") -> tuple[Any, list[Any]]:
    """A schedule with a block for each row and 16 threads in it, and its arguments."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), kind, name="A")
    k = te.reduce_axis((0, m), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = s[b].split(b.op.reduce_axis[0], factor=16)
    s[b].reorder(inner, outer)
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    return s, [a, b]
