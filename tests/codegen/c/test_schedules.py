"""Scheduled tensor expressions, built for the target c and compiled, give NumPy's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
from tilewright import te, tir


def run(compile_c: Any, schedule: Any, tensors: list[Any], *arrays: Any) -> None:
    module = tvm.build(schedule, tensors, "c", name="f")
    compile_c(module.get_source("c"), "f")(*arrays)


def test_matrix_product(compile_c: Any) -> None:
    """Tiles that do not divide, packed operands, vectors, unrolled and parallel loops."""
    rows, columns, depth = 33, 29, 21
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "global")
    outer_row, outer_column, _, column = s[c].tile(c.op.axis[0], c.op.axis[1], 6, 8)
    s[cache].compute_at(s[c], outer_column)
    inner_row, inner_column = s[cache].op.axis
    chunk, inner_depth = s[cache].split(cache.op.reduce_axis[0], factor=4)
    s[cache].reorder(chunk, inner_depth, inner_row, inner_column)
    s[cache].vectorize(inner_column)
    s[cache].unroll(inner_depth)
    s[c].vectorize(column)
    s[c].parallel(outer_row)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype("float32") for shape in ((rows, depth), (depth, columns)))
    z = np.zeros((rows, columns), "float32")
    run(compile_c, s, [a, b, c], x, y, z)
    np.testing.assert_array_equal(z, x @ y)


def test_softmax_of_symbolic_rows(compile_c: Any) -> None:
    """Reductions, intrinsics and sizes known only at the call."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k, l = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    greatest = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="greatest")
    powers = te.compute((n, m), lambda i, j: te.exp(a[i, j] - greatest[i]), name="powers")
    total = te.compute((n,), lambda i: te.sum(powers[i, l], axis=l), name="total")
    b = te.compute((n, m), lambda i, j: powers[i, j] / total[i], name="B")
    x = np.random.default_rng(0).standard_normal((7, 13)).astype("float32")
    y = np.zeros_like(x)
    run(compile_c, te.create_schedule(b.op), [a, b], x, y)
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-6)


def test_padding_and_bytes(compile_c: Any) -> None:
    """Conditions guard reads outside the input; eight-bit products are summed in thirty-two."""
    a, w = te.placeholder((16,), "uint8", name="A"), te.placeholder((3,), "int8", name="W")
    k = te.reduce_axis((0, 3), "k")
    padded = te.compute(
        (18,),
        lambda i: tir.if_then_else(tir.all(i >= 1, i < 17), a[i - 1], tir.const(0, "uint8")),
        name="padded",
    )
    b = te.compute(
        (16,), lambda i: te.sum(padded[i + k].astype("int32") * w[k].astype("int32"), axis=k), name="B"
    )
    s = te.create_schedule(b.op)
    s[padded].compute_inline()
    x, v = np.arange(200, 216).astype("uint8"), np.array([-3, 5, -7], "int8")
    y = np.zeros(16, "int32")
    run(compile_c, s, [a, w, b], x, v, y)
    np.testing.assert_array_equal(y, np.convolve(x.astype("int32"), v[::-1].astype("int32"), "same"))
