"""Memory-bound kernels: elementwise, row sums, softmax and layer norm, scheduled by hand.

Run it:  python examples/row_kernels.py

A row reduction is factored into a vector of partial results (``rfactor``), so that it uses full vector width, and
everything about a row is computed while the row is in L1 (``compute_at``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te, tir
from tilewright.target.cpu import describe_cpu

Kernel = tuple[te.Schedule, list[te.Tensor]]


def _in_vectors(s: te.Schedule, reduced: te.Tensor, lanes: int) -> list[te.Tensor]:
    """Factor a row reduction into partial results that are computed as vectors, and give their tensors.

    Four vectors at a time come first, then one, then a quarter of one, so that the chain of dependent steps is short.
    """
    made = []
    for width in (4 * lanes, lanes, max(lanes // 4, 1)):
        _, lane = s[reduced].split(s[reduced].op.reduce_axis[0], factor=width)
        partial = s.rfactor(reduced, lane, factor_axis=1)
        row, lane = s[partial].op.axis
        s[partial].reorder(row, s[partial].op.reduce_axis[0], lane)
        s[partial].vectorize(lane)
        made.append(partial)
    for tensor in (*made[1:], reduced):
        s[tensor].unroll(s[tensor].op.reduce_axis[0])
    return made


def elementwise(size: int, lanes: int, parallel: bool = True, streaming: bool = False) -> Kernel:
    """``B = 2 A + 1``. ``streaming`` stores past the caches, for arrays that do not fit in them."""
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4 * lanes)
    s[b].vectorize(inner)
    if streaming:
        s[b].pragma(outer, "nontemporal_store")
    if parallel:
        s[b].parallel(outer)
    return s, [a, b]


def row_sum(rows: int, columns: int, lanes: int, parallel: bool = True) -> Kernel:
    """The sum of each row."""
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    for partial in _in_vectors(s, b, lanes):
        s[partial].compute_at(s[b], s[b].op.axis[0])
    if parallel:
        s[b].parallel(s[b].op.axis[0])
    return s, [a, b]


def softmax(rows: int, columns: int, lanes: int, parallel: bool = True) -> Kernel:
    """``exp(A - max) / sum`` along each row."""
    a = te.placeholder((rows, columns), name="A")
    k1 = te.reduce_axis((0, columns), name="k1")
    k2 = te.reduce_axis((0, columns), name="k2")
    largest = te.compute((rows,), lambda i: te.max(a[i, k1], axis=k1), name="largest")
    raised = te.compute((rows, columns), lambda i, j: te.exp(a[i, j] - largest[i]), name="raised")
    total = te.compute((rows,), lambda i: te.sum(raised[i, k2], axis=k2), name="total")
    inverse = te.compute((rows,), lambda i: tir.const(1, "float32") / total[i], name="inverse")
    b = te.compute((rows, columns), lambda i, j: raised[i, j] * inverse[i], name="B")
    s = te.create_schedule(b.op)
    row = s[b].op.axis[0]
    for tensor in (largest, total):
        for partial in _in_vectors(s, tensor, lanes):
            s[partial].compute_at(s[b], row)
    for tensor in (largest, raised, total, inverse):
        s[tensor].compute_at(s[b], row)
    for tensor in (raised, b):
        _, inner = s[tensor].split(s[tensor].op.axis[1], factor=4 * lanes)
        s[tensor].vectorize(inner)
    if parallel:
        s[b].parallel(row)
    return s, [a, b]


def layer_norm(rows: int, columns: int, lanes: int, epsilon: float = 1e-5, parallel: bool = True) -> Kernel:
    """``(A - mean) / sqrt(variance + epsilon) * G + H`` along each row."""
    a = te.placeholder((rows, columns), name="A")
    gain = te.placeholder((columns,), name="G")
    shift = te.placeholder((columns,), name="H")
    k1 = te.reduce_axis((0, columns), name="k1")
    k2 = te.reduce_axis((0, columns), name="k2")
    scale = tir.const(1.0 / columns, "float32")
    total = te.compute((rows,), lambda i: te.sum(a[i, k1], axis=k1), name="total")
    mean = te.compute((rows,), lambda i: total[i] * scale, name="mean")
    squares = te.compute(
        (rows,), lambda i: te.sum((a[i, k2] - mean[i]) * (a[i, k2] - mean[i]), axis=k2), name="squares"
    )
    inverse = te.compute(
        (rows,), lambda i: te.rsqrt(squares[i] * scale + tir.const(epsilon, "float32")), name="inverse"
    )
    b = te.compute(
        (rows, columns), lambda i, j: (a[i, j] - mean[i]) * inverse[i] * gain[j] + shift[j], name="B"
    )
    s = te.create_schedule(b.op)
    row, column = s[b].op.axis
    for tensor in (total, squares):
        for partial in _in_vectors(s, tensor, lanes):
            s[partial].compute_at(s[b], row)
    for tensor in (total, mean, squares, inverse):
        s[tensor].compute_at(s[b], row)
    _, inner = s[b].split(column, factor=4 * lanes)
    s[b].vectorize(inner)
    if parallel:
        s[b].parallel(row)
    return s, [a, gain, shift, b]


def main() -> None:
    """Build each kernel, check it against NumPy, and time it."""
    lanes = describe_cpu("llvm").lanes(32)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((4096, 1024), dtype="float32")
    g, h = (generator.standard_normal(1024, dtype="float32") for _ in range(2))
    shifted = np.exp(x - x.max(1, keepdims=True))
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    cases: list[tuple[str, Kernel, list[Any], Any]] = [
        ("elementwise", elementwise(x.size, lanes), [x.reshape(-1)], 2 * x.reshape(-1) + 1),
        ("row_sum", row_sum(4096, 1024, lanes), [x], x.sum(1)),
        ("softmax", softmax(4096, 1024, lanes), [x], shifted / shifted.sum(1, keepdims=True)),
        ("layer_norm", layer_norm(4096, 1024, lanes), [x, g, h], normal * g + h),
    ]
    for name, (schedule, arguments), inputs, expected in cases:
        kernel = tvm.build(schedule, arguments, "llvm", name=name)
        arrays = [tvm.nd.array(value) for value in inputs]
        output = tvm.nd.empty(expected.shape, "float32")
        kernel(*arrays, output)
        np.testing.assert_allclose(output.numpy(), expected, rtol=1e-3, atol=1e-3)
        seconds = kernel.time_evaluator(name, tvm.cpu(), number=5, repeat=5)(*arrays, output).median
        print(f"{name}: {seconds * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
