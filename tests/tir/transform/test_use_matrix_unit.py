"""Products that a schedule gives to the matrix unit are one call, beside the loops that they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import Call
from tilewright.ir.functor import post_order
from tilewright.tir.interpreter import interpret
from tilewright.tir.packed_lanes import dot_word
from tilewright.topi import x86

TARGET = "llvm -mcpu=sapphirerapids"


def calls_of(function: Any) -> list[Call]:
    """The calls of the unit in a function."""
    return [
        part
        for part in post_order(function.body)
        if isinstance(part, Call) and part.op.name == "tir.matrix_multiply_add"
    ]


def numbers_of(call: Call) -> list[int]:
    return [int(argument.value) for argument in call.args[4:]]


def lowered_dense(rows: int, depth: int) -> Any:
    """A dense layer of uint8 by int8 with 32 units."""
    data, weight = (
        te.placeholder((rows, depth), "uint8", "x"),
        te.placeholder((1, depth // 4, 32, 4), "int8", "w"),
    )
    with tvm.target.Target(TARGET):
        out = x86.dense_pack(data, weight, None, "int32")
        return tvm.lower(x86.schedule_dense_pack(out), [data, weight, out], name="f")["f"]


def test_a_dense_layer() -> None:
    """Two tiles of rows, two of columns, and a loop over steps of sixteen words."""
    (call,) = calls_of(lowered_dense(64, 128))
    assert call.args[0].value == "dot_uint8_int8"
    assert numbers_of(call) == [32, 16, 128, 128, 128, 2, 16, 0, 0, 16, 16 * 128, 16 * 128, 1, 2, 64, 64 * 32]


def test_rows_that_are_left_over() -> None:
    """The last rows are a call of their own."""
    counts = [
        sum(numbers_of(call)[6 : 6 + 3 * numbers_of(call)[5] : 3]) for call in calls_of(lowered_dense(37, 64))
    ]
    assert sorted(counts)[-1] <= 32 and len(counts) == 2 and 37 % max(counts) == min(counts)


@pytest.mark.parametrize("rows", [16, 37])
def test_the_loops_stay_for_when_the_unit_may_not_be_used(rows: int) -> None:
    """The interpreter, which has no matrix unit, computes the same numbers."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 255, (rows, 64), dtype="uint8", endpoint=True)
    w = rng.integers(-128, 127, (1, 16, 32, 4), dtype="int8", endpoint=True)
    found = np.zeros((rows, 32), "int32")
    interpret(lowered_dense(rows, 64), x, w, found)
    whole = w[0].transpose(0, 2, 1).reshape(64, 32).astype("int64")
    np.testing.assert_array_equal(found, x.astype("int64") @ whole)


def test_another_form_is_left_as_it_is() -> None:
    """Rows that do not lie at constant distances, and operations that are not product, stay loops."""
    a, b = te.placeholder((16, 16), "int32", "a"), te.placeholder((16, 16), "int32", "b")
    k = te.reduce_axis((0, 16), "k")
    forms = [
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=k),
        lambda i, j: te.sum(dot_word(a[(i * i) % 16, k], b[k, j], "uint8", "int8"), axis=k),
    ]
    for form in forms:
        c = te.compute((16, 16), form, "c")
        schedule = te.create_schedule(c.op)
        schedule[c].reorder(*c.op.reduce_axis, *c.op.axis)
        schedule[c].pragma(c.op.reduce_axis[0], "matrix_unit")
        function = tvm.lower(schedule, [a, b, c], name="f")["f"]
        assert calls_of(function) == [] and "matrix_unit" not in str(function)
