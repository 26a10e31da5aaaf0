"""Features of schedules, and the operations that they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import te, topi
from tilewright.autotvm import feature
from tilewright.autotvm.task.task import FlopCalculationError, compute_flop


def _product(rows: int, columns: int, depth: int) -> tuple[Any, list[Any]]:
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")
    return te.create_schedule(c.op), [a, b, c]


def test_loops_and_what_they_touch() -> None:
    """Strides, elements and reuse of a product of 4x8 by 8x16, loop by loop."""
    s, tensors = _product(4, 16, 8)
    rows = feature.get_itervar_feature(s, tensors)
    found = [{pair[0]: pair[1:] for pair in row} for row in rows]
    assert [one["_attr_"][:4] for one in found] == [[4, 1, 4, 512], [16, 2, 64, 128], [8, 3, 512, 8]]
    assert [one["_attr_"][4:].index(1) for one in found] == [9, 9, 9]
    assert [one["A_0"] for one in found] == [[8, -1, 32, 16, 0, 0], [0, -1, 8, 16, 0, 0], [1, -1, 8, 1, 0, 0]]
    assert [one["B_0"][:4] for one in found] == [[0, -1, 128, 4], [1, -1, 128, 1], [16, -1, 8, 1]]
    # Each step of the innermost loop is one addition and one multiplication.
    assert found[2]["_arith_"] == [1, 1, 0]
    assert len(feature.get_flatten_name(rows)) == len(feature.flatten_itervar_feature(rows))


def test_kinds_of_loops() -> None:
    """The kind of each loop is one of eleven numbers; a loop that only initialises has no row."""
    s, tensors = _product(4, 16, 8)
    c = tensors[2]
    y, x = s[c].op.axis
    outer, inner = s[c].split(x, factor=4)
    s[c].reorder(outer, s[c].op.reduce_axis[0], y, inner)
    s[c].parallel(outer)
    s[c].unroll(y)
    s[c].vectorize(inner)
    rows = feature.get_itervar_feature(s, tensors)
    kinds = [{pair[0]: pair[1:] for pair in row}["_attr_"][4:].index(1) for row in rows]
    assert kinds == [8, 9, 6, 7]


def test_curves_do_not_depend_on_loops() -> None:
    """As many numbers for every schedule, and other ones for another order of loops."""
    s, tensors = _product(16, 16, 16)
    first = feature.get_buffer_curve_sample_flatten(s, tensors, sample_n=6)
    c = tensors[2]
    s[c].reorder(s[c].op.reduce_axis[0], *s[c].op.axis)
    second = feature.get_buffer_curve_sample_flatten(s, tensors, sample_n=6)
    assert len(first) == len(second) == 6 * 3 * 4 * 2
    assert not np.array_equal(first, second)


def test_operations_are_counted() -> None:
    """Two for each step of a product; a copy has none, which is an error that names add_flop."""
    s, _ = _product(4, 16, 8)
    assert compute_flop(s) == 2 * 4 * 16 * 8
    x = te.placeholder((1, 3, 8, 8), name="x")
    pooled = topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    assert compute_flop(te.create_schedule(pooled.op)) == 3 * 4 * 4 * 4
    copied = te.compute((4,), lambda i: x[0, 0, 0, i])
    with pytest.raises(FlopCalculationError, match="add_flop"):
        compute_flop(te.create_schedule(copied.op))
