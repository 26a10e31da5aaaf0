"""Products that a schedule gives to the matrix unit are one call, beside the loops that they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import Call, is_const
from tilewright.ir.functor import post_order
from tilewright.tir.interpreter import interpret
from tilewright.tir.packed_lanes import dot_word
from tilewright.tir.stmt import AttrStmt, For, ForKind, IfThenElse, Store
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
    expected = [1, 32, 16, 128, 128, 128, 2, 16, 0, 0, 16, 16 * 128, 16 * 128, 1, 2, 64, 64 * 32]
    assert numbers_of(call) == expected


def test_rows_that_are_left_over() -> None:
    """The last rows are a call of their own."""
    counts = [
        sum(numbers_of(call)[7 : 7 + 3 * numbers_of(call)[6] : 3]) for call in calls_of(lowered_dense(37, 64))
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


def small_convolution(channels: int) -> Any:
    """A 3x3 convolution of few channels, in blocks of all of them."""
    data = te.placeholder((1, 1, 10, 34, channels), "uint8", "x")
    kernel = te.placeholder((1, 1, 3, 3, channels // 4, 16, 4), "int8", "w")
    with tvm.target.Target(TARGET):
        out = x86.conv2d_NCHWc_int8(data, kernel, 1, 0, 1, f"NCHW{channels}c", "NCHW16c")
        lowered = tvm.lower(x86.schedule_conv2d_NCHWc_int8(out), [data, kernel, out], name="f")["f"]
    return lowered, (data, kernel, out)


@pytest.mark.parametrize(("channels", "words", "steps"), [(16, 12, 3), (4, 3, None), (32, 8, 9)])
def test_taps_of_few_channels_are_one_step(channels: int, words: int, steps: int | None) -> None:
    """The channels of neighbouring pixels follow each other in memory, and so do their weights: 3 taps of 16 channels
    are a step of 12 words. 3 words are too few for the unit, and 3 times 8 too many for a step."""
    calls = calls_of(small_convolution(channels)[0])
    if steps is None:
        assert calls == []
        return
    for call in calls:
        numbers = numbers_of(call)
        loops = numbers[8 + 3 * numbers[6] :]
        assert numbers[2] == words and np.prod(loops[::3], dtype=int) == steps


def attributes_of(function: Any, key: str) -> list[Any]:
    """The attributes with this key, outermost first."""
    parts = post_order(function.body)
    return [part for part in reversed(parts) if isinstance(part, AttrStmt) and part.attr_key == key]


def test_the_unit_is_configured_around_the_parallel_loop() -> None:
    """Once a thread: columns, words and the rows of both groups."""
    (attribute,) = attributes_of(lowered_dense(64, 128), "matrix_unit_tiles")
    assert [size.value for size in attribute.value.args] == [32, 16, 16, 16]
    assert isinstance(attribute.body, For) and attribute.body.kind == ForKind.PARALLEL


def test_other_rows_have_another_configuration() -> None:
    """The last rows are other tiles: each is configured for itself, within the loop that has both."""
    sizes = [
        tuple(size.value for size in attribute.value.args)
        for attribute in attributes_of(lowered_dense(37, 64), "matrix_unit_tiles")
    ]
    assert len(sizes) == len(set(sizes)) == 2


def test_zeros_are_only_stored_where_the_unit_is_not_used() -> None:
    """The unit begins with zeros of its own; the loops that fill the sum are with those that add to it."""
    function = lowered_dense(64, 128)
    (choice,) = [part for part in post_order(function.body) if isinstance(part, IfThenElse)]
    stores = [part for part in post_order(function.body) if isinstance(part, Store)]
    zeros = [store for store in stores if is_const(store.value, 0)]
    assert len(zeros) == 1 and zeros[0] in post_order(choice.else_case)


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
