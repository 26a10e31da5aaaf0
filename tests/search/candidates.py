"""Candidates that do harm, for tests: loops that call functions of the system."""

from __future__ import annotations

import tilewright as tvm
from tilewright import te, tir
from tilewright.compile import lower
from tilewright.ir.module import IRModule

SIZE = 64
TARGET = tvm.target.Target("llvm")


def product(rows: int = 4) -> IRModule:
    """A matrix product, with a tile of so many rows."""
    a = te.placeholder((SIZE, SIZE), name="a")
    b = te.placeholder((SIZE, SIZE), name="b")
    k = te.reduce_axis((0, SIZE), "k")
    c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    schedule = te.create_schedule(c.op)
    outer, inner = schedule[c].split(c.op.axis[0], rows)
    schedule[c].reorder(outer, k, inner, c.op.axis[1])
    schedule[c].vectorize(c.op.axis[1])
    return lower(schedule, [a, b, c], "main")


def calls(name: str, *arguments: object) -> IRModule:
    """Loops of the same arguments that call a C function for every row."""
    a = te.placeholder((SIZE, SIZE), name="a")
    b = te.placeholder((SIZE, SIZE), name="b")

    def element(i: te.Var, j: te.Var) -> object:
        return a[i, j] + tir.call_extern("int32", name, *arguments).astype("float32")

    c = te.compute((SIZE, SIZE), element, name="c")
    d = te.compute((SIZE, SIZE), lambda i, j: c[i, j] + b[i, j], name="d")
    return lower(te.create_schedule(d.op), [a, b, d], "main")


def wrong() -> IRModule:
    """Another computation on the same arguments."""
    a = te.placeholder((SIZE, SIZE), name="a")
    b = te.placeholder((SIZE, SIZE), name="b")
    c = te.compute((SIZE, SIZE), lambda i, j: a[i, j] + b[i, j], name="c")
    return lower(te.create_schedule(c.op), [a, b, c], "main")


def needs_memory() -> IRModule:
    """A gigabyte for an intermediate result."""
    a = te.placeholder((SIZE, SIZE), name="a")
    b = te.placeholder((SIZE, SIZE), name="b")
    large = te.compute((1 << 14, 1 << 14), lambda i, j: a[i % SIZE, j % SIZE], name="large")
    c = te.compute((SIZE, SIZE), lambda i, j: large[i * 256, j * 256] + b[i, j], name="c")
    return lower(te.create_schedule(c.op), [a, b, c], "main")
