"""Small programs of blocks that the tests of schedules share, with what NumPy gives for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.tir.interpreter import interpret


@dataclass(frozen=True)
class Program:
    """A function and its NumPy meaning: from the inputs to the outputs, which are the last arguments."""

    function: tir.PrimFunc
    shapes: list[tuple[int, ...]]
    outputs: int
    reference: Callable[..., Any]

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Random inputs, and outputs full of what must be overwritten. Small integers: every order of additions is
        exact."""
        draw = np.random.default_rng(seed)
        count = len(self.shapes) - self.outputs
        inputs = [draw.integers(-4, 5, shape).astype("float32") for shape in self.shapes[:count]]
        return inputs + [np.full(shape, 77.0, "float32") for shape in self.shapes[count:]]

    def check(self, function: Any, *, compiled: bool = True) -> None:
        """The function computes what the program says, by interpretation and as machine code."""
        arrays = self.arrays(0)
        count = len(arrays) - self.outputs
        expected = self.reference(*[array.astype("float64") for array in arrays[:count]])
        expected = expected if isinstance(expected, tuple) else (expected,)
        interpret(function, *arrays)
        for got, wanted in zip(arrays[count:], expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
        if compiled:
            values = [tvm.nd.array(array) for array in self.arrays(0)]
            tvm.build(function, target="llvm")(*values)
            for made, wanted in zip(values[count:], expected, strict=True):
                np.testing.assert_array_equal(made.numpy(), wanted)


@T.prim_func
def chain(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 8))
    C = T.match_buffer(c, (16, 8))
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


def matmul(m: int = 12, n: int = 16, k: int = 10) -> Program:
    """A matrix product."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return Program(te.create_prim_func([a, b, c]), [(m, k), (k, n), (m, n)], 1, lambda x, y: x @ y)


def matmul_relu(m: int = 12, n: int = 16, k: int = 10) -> Program:
    """A matrix product and an epilogue."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    d = te.compute((m, n), lambda i, j: te.max(c[i, j], 0.0), name="D")
    shapes = [(m, k), (k, n), (m, n)]
    return Program(te.create_prim_func([a, b, d]), shapes, 1, lambda x, y: np.maximum(x @ y, 0))


def elementwise(m: int = 12, n: int = 10) -> Program:
    """Three elementwise steps."""
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((m, n), lambda i, j: b[i, j] + 1.0, name="C")
    d = te.compute((m, n), lambda i, j: c[i, j] * c[i, j], name="D")
    return Program(te.create_prim_func([a, d]), [(m, n), (m, n)], 1, lambda x: (x * 2 + 1) ** 2)


def padded_sum(n: int = 14) -> Program:
    """Padding, then sums of three neighbours, as a convolution has them."""
    a = te.placeholder((n,), name="A")
    p = te.compute(
        (n + 2,),
        lambda i: tir.if_then_else(tir.all(i >= 1, i < n + 1), a[i - 1], tir.const(0.0, "float32")),
        name="P",
    )
    r = te.reduce_axis((0, 3), name="r")
    s = te.compute((n,), lambda i: te.sum(p[i + r], axis=r), name="S")

    def reference(x: Any) -> Any:
        wide = np.pad(x, 1)
        return wide[:-2] + wide[1:-1] + wide[2:]

    return Program(te.create_prim_func([a, s]), [(n,), (n,)], 1, reference)


def two_consumers(m: int = 8, n: int = 12) -> Program:
    """A value that two blocks read, one of them a reduction."""
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] + 3.0, name="B")
    c = te.compute((m, n), lambda i, j: b[i, j] * 2.0, name="C")
    axis = te.reduce_axis((0, n), name="k")
    d = te.compute((m,), lambda i: te.sum(b[i, axis], axis=axis), name="D")
    return Program(
        te.create_prim_func([a, c, d]),
        [(m, n), (m, n), (m,)],
        2,
        lambda x: ((x + 3) * 2, (x + 3).sum(axis=1)),
    )


def row_maximum(m: int = 6, n: int = 9) -> Program:
    """A maximum over rows, taken from what it read: two stages."""
    a = te.placeholder((m, n), name="A")
    axis = te.reduce_axis((0, n), name="k")
    b = te.compute((m,), lambda i: te.max(a[i, axis], axis=axis), name="B")
    c = te.compute((m, n), lambda i, j: a[i, j] - b[i], name="C")
    return Program(
        te.create_prim_func([a, c]), [(m, n), (m, n)], 1, lambda x: x - x.max(axis=1, keepdims=True)
    )


PROGRAMS = (matmul, matmul_relu, elementwise, padded_sum, two_consumers, row_maximum)


def refused(schedule: tir.Schedule, step: Callable[[], Any], message: str) -> None:
    """The step raises an error with this message and leaves the schedule as it was."""
    before, steps = schedule.mod, len(schedule.trace)
    with pytest.raises(ScheduleError, match=message):
        step()
    assert schedule.mod is before
    assert all(inst.kind.is_pure for inst in schedule.trace.insts[steps:])
    for stmt, reference in schedule.state.references.items():
        assert reference.stmt is stmt
