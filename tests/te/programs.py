"""Computations that schedules are tried on, each with its result in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import te, tir


@dataclass(frozen=True)
class Program:
    """A computation: its arguments, the last ``outputs`` of which are written, and what NumPy gives for the
    others."""

    arguments: list[Any]
    shapes: list[tuple[int, ...]]
    dtypes: list[str]
    outputs: int
    reference: Callable[..., Any]

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Arguments with random inputs and with outputs full of a value that no result has."""
        generator = np.random.default_rng(seed)
        made = []
        count = len(self.shapes)
        for position, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True)):
            if position >= count - self.outputs:
                made.append(np.full(shape, 99, dtype))
            elif dtype.startswith("float"):
                made.append(generator.uniform(-1, 1, shape).astype(dtype))
            else:
                made.append(generator.integers(-20, 20, shape).astype(dtype))
        return made

    def check(self, arrays: list[np.ndarray]) -> None:
        """The outputs are what NumPy gives for the inputs."""
        inputs = arrays[: len(arrays) - self.outputs]
        expected = self.reference(*inputs)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        for got, want in zip(arrays[len(arrays) - self.outputs :], wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def elementwise() -> Program:
    """A chain of elementwise computations of which any may be inlined."""
    a = te.placeholder((9, 14), name="A")
    b = te.compute((9, 14), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((9, 14), lambda i, j: b[i, j] + 1.0, name="C")
    d = te.compute((9, 14), lambda i, j: c[i, j] * b[i, j], name="D")
    return Program([a, d], [(9, 14)] * 2, ["float32"] * 2, 1, lambda x: (x * 2 + 1) * (x * 2))


def symbolic_stencil() -> Program:
    """Readers of neighbours, over a size that is known when the program runs."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((n - 2,), lambda i: b[i] + b[i + 1] + b[i + 2], name="C")
    return Program([a, c], [(23,), (21,)], ["float32"] * 2, 1, lambda x: 2 * (x[:-2] + x[1:-1] + x[2:]))


def matmul() -> Program:
    """A reduction over one axis."""
    a = te.placeholder((10, 13), name="A")
    b = te.placeholder((13, 7), name="B")
    k = te.reduce_axis((0, 13), name="k")
    c = te.compute((10, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return Program([a, b, c], [(10, 13), (13, 7), (10, 7)], ["float32"] * 3, 1, lambda x, y: x @ y)


def matmul_symbolic() -> Program:
    """A reduction with sizes that are known when the program runs."""
    m, n, depth = te.var("m"), te.var("n"), te.var("d")
    a = te.placeholder((m, depth), name="A")
    b = te.placeholder((n, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    d = te.compute((m, n), lambda i, j: tir.max(c[i, j], 0.0), name="D")
    return Program(
        [a, b, d], [(5, 11), (6, 11), (5, 6)], ["float32"] * 3, 1, lambda x, y: np.maximum(x @ y.T, 0)
    )


def convolution() -> Program:
    """Padding, then a reduction over three axes."""
    x = te.placeholder((2, 6, 7), name="X")
    w = te.placeholder((3, 2, 3, 3), name="W")
    padded = te.compute(
        (2, 8, 9),
        lambda c, h, q: te.if_then_else(te.all(h >= 1, h < 7, q >= 1, q < 8), x[c, h - 1, q - 1], 0.0),
        name="P",
    )
    rc = te.reduce_axis((0, 2), name="rc")
    rh = te.reduce_axis((0, 3), name="rh")
    rw = te.reduce_axis((0, 3), name="rw")
    y = te.compute(
        (3, 6, 7),
        lambda o, h, q: te.sum(padded[rc, h + rh, q + rw] * w[o, rc, rh, rw], axis=[rc, rh, rw]),
        name="Y",
    )

    def reference(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
        pad = np.pad(data, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(pad, (3, 3), axis=(1, 2))
        return np.einsum("chwrs,ocrs->ohw", windows, weight)

    return Program([x, w, y], [(2, 6, 7), (3, 2, 3, 3), (3, 6, 7)], ["float32"] * 3, 1, reference)


def softmax() -> Program:
    """Two reductions and what lies between, with several readers of one tensor."""
    a = te.placeholder((6, 11), name="A")
    k1 = te.reduce_axis((0, 11), name="k1")
    k2 = te.reduce_axis((0, 11), name="k2")
    largest = te.compute((6,), lambda i: te.max(a[i, k1], axis=k1), name="M")
    e = te.compute((6, 11), lambda i, j: te.exp(a[i, j] - largest[i]), name="E")
    total = te.compute((6,), lambda i: te.sum(e[i, k2], axis=k2), name="S")
    out = te.compute((6, 11), lambda i, j: e[i, j] / total[i], name="O")

    def reference(x: np.ndarray) -> np.ndarray:
        shifted = np.exp(x - x.max(1, keepdims=True))
        return shifted / shifted.sum(1, keepdims=True)

    return Program([a, out], [(6, 11)] * 2, ["float32"] * 2, 1, reference)


def argmax() -> Program:
    """A reduction of pairs. Of equal values the one at the lower index wins, so that every order of the
    reduction agrees."""
    a = te.placeholder((5, 17), name="A", dtype="int32")
    k = te.reduce_axis((0, 17), name="k")

    def combine(left: Any, right: Any) -> Any:
        keep = te.any(left[1] > right[1], te.all(left[1] == right[1], left[0] < right[0]))
        return tir.Select(keep, left[0], right[0]), tir.Select(keep, left[1], right[1])

    reducer = te.comm_reducer(combine, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="argmax")
    index, value = te.compute((5,), lambda i: reducer((k.var, a[i, k]), axis=k), name="R")

    return Program(
        [a, index, value], [(5, 17), (5,), (5,)], ["int32"] * 3, 2, lambda x: (x.argmax(1), x.max(1))
    )


def two_outputs() -> Program:
    """One computation that gives two tensors."""
    a = te.placeholder((8, 5), name="A")
    s, d = te.compute((8, 5), lambda i, j: (a[i, j] + 1.0, a[i, j] * 3.0), name="T")
    return Program([a, s, d], [(8, 5)] * 3, ["float32"] * 3, 2, lambda x: (x + 1, x * 3))


def transposed() -> Program:
    """A reader that takes another axis order, through an index that is divided."""
    a = te.placeholder((12, 6), name="A")
    b = te.compute((6, 12), lambda i, j: a[j, i] + 1.0, name="B")
    c = te.compute((72,), lambda i: b[i // 12, i % 12] * 2.0, name="C")
    return Program([a, c], [(12, 6), (72,)], ["float32"] * 2, 1, lambda x: ((x.T + 1) * 2).reshape(-1))


def diamond() -> Program:
    """A tensor with two readers that meet again, and two outputs of the program."""
    a = te.placeholder((7, 9), name="A")
    b = te.compute((7, 9), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 9), name="k")
    rows = te.compute((7,), lambda i: te.sum(b[i, k], axis=k), name="R")
    c = te.compute((7, 9), lambda i, j: b[i, j] - rows[i], name="C")
    return Program(
        [a, rows, c],
        [(7, 9), (7,), (7, 9)],
        ["float32"] * 3,
        2,
        lambda x: ((x + 1).sum(1), (x + 1) - (x + 1).sum(1, keepdims=True)),
    )


def scalar_result() -> Program:
    """A reduction of everything to a tensor without dimensions."""
    a = te.placeholder((6, 10), name="A")
    i = te.reduce_axis((0, 6), name="i")
    j = te.reduce_axis((0, 10), name="j")
    total = te.compute((), lambda: te.sum(a[i, j], axis=[i, j]), name="S")
    return Program([a, total], [(6, 10), ()], ["float32"] * 2, 1, lambda x: x.sum())


def integer_pooling() -> Program:
    """A maximum over strided windows of integers, with a reduction that starts elsewhere than at zero."""
    a = te.placeholder((11, 9), name="A", dtype="int32")
    r = te.reduce_axis((1, 3), name="r")
    q = te.reduce_axis((0, 2), name="q")
    b = te.compute((4, 4), lambda i, j: te.max(a[i * 2 + r, j * 2 + q], axis=[r, q]), name="B")

    def reference(x: np.ndarray) -> np.ndarray:
        return np.array(
            [[x[i * 2 + 1 : i * 2 + 3, j * 2 : j * 2 + 2].max() for j in range(4)] for i in range(4)]
        )

    return Program([a, b], [(11, 9), (4, 4)], ["int32"] * 2, 1, reference)


def joined() -> Program:
    """A row of one tensor before the rows of another: most iterations do not read the first."""
    a, b = te.placeholder((1, 9), name="A"), te.placeholder((6, 9), name="B")
    root = te.compute((1, 9), lambda i, j: te.exp(a[i, j]), name="root")
    shifted = te.compute((6, 9), lambda i, j: b[i, j] + 1.0, name="shifted")
    c = te.compute((7, 9), lambda i, j: te.if_then_else(i < 1, root[i, j], shifted[i - 1, j]), name="C")
    return Program(
        [a, b, c],
        [(1, 9), (6, 9), (7, 9)],
        ["float32"] * 3,
        1,
        lambda x, y: np.concatenate([np.exp(x), y + 1]),
    )


PROGRAMS: list[Callable[[], Program]] = [
    elementwise,
    symbolic_stencil,
    matmul,
    matmul_symbolic,
    convolution,
    softmax,
    two_outputs,
    transposed,
    diamond,
    scalar_result,
    integer_pooling,
    argmax,
    joined,
]
