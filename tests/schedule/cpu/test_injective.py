"""Elementwise stages whose vectors are gathered from lines of the cache."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir, topi
from tilewright.ir.functor import post_order
from tilewright.schedule.cpu.graph import materialized_stages
from tilewright.schedule.cpu.injective import crossing_axis
from tilewright.schedule.cpu.schedule import construct_schedule
from tilewright.target.cpu import describe_cpu


def transposition(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[te.Tensor, te.Tensor]:
    """A placeholder, and itself with its axes in another order, times two."""
    given = te.placeholder(shape, name="given")
    return given, topi.multiply(topi.transpose(given, order), 2.0)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((200, 300), (1, 0)),
        ((64, 1024), (1, 0)),
        ((3, 50, 70, 20), (0, 3, 1, 2)),
        ((2, 40, 33, 16), (0, 3, 1, 2)),
        ((2, 3, 37, 41, 16), (0, 1, 4, 2, 3)),
        ((17, 1000), (1, 0)),
    ],
)
def test_transpositions(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Every element goes where it should, whether or not lines and vectors divide the axes."""
    given, made = transposition(shape, order)
    with tvm.target.Target("llvm"):
        function = tvm.build(construct_schedule([made]), [given, made], "llvm")
    value = np.random.default_rng(0).random(shape, "float32")
    result = tvm.nd.empty([shape[axis] for axis in order])
    function(tvm.nd.array(value), result)
    np.testing.assert_array_equal(result.numpy(), 2 * value.transpose(order))


@pytest.mark.parametrize(
    ("shape", "order", "axis"),
    [
        ((200, 300), (1, 0), 0),
        ((2, 64, 64, 16), (0, 3, 1, 2), 1),
        ((200, 300), (0, 1), None),
        ((20, 30), (1, 0), None),
        ((300, 200, 4), (1, 0, 2), None),
    ],
)
def test_the_axis_through_the_lines(shape: tuple[int, ...], order: tuple[int, ...], axis: int | None) -> None:
    """It is the one that is contiguous in what is read; there is none for vectors of neighbours, or where all that is
    read stays in L1."""
    _, made = transposition(shape, order)
    schedule = te.create_schedule(made.op)
    schedule[made.op.input_tensors[0]].compute_inline()
    materialized = next(one for one in materialized_stages(schedule) if one.stage.op.name == made.op.name)
    found = crossing_axis(materialized, describe_cpu("llvm -mcpu=skylake-avx512"))
    assert (found is None) == (axis is None)
    if found is not None and axis is not None:
        assert found[0] is made.op.axis[axis] and found[1] == 16


def test_blocks_that_are_not_whole_vectors() -> None:
    """Lines of a block of 51 channels have 17 of them."""
    data = te.placeholder((1, 5, 40, 40, 51), name="data")
    made = topi.layout_transform(data, "NCHW51c", "NCHW")
    schedule = te.create_schedule(made.op)
    materialized = next(one for one in materialized_stages(schedule) if one.stage.op is made.op)
    found = crossing_axis(materialized, describe_cpu("llvm -mcpu=skylake-avx512"))
    assert found is not None and found[0] is made.op.axis[1] and found[1] == 17


def test_lines_are_read_before_the_next_vector() -> None:
    """The innermost loop goes through a line, and each of its iterations makes one vector."""
    given, made = transposition((1024, 256), (1, 0))
    lanes = describe_cpu("llvm").lanes(32)
    with tvm.target.Target("llvm"):
        module = tvm.lower(construct_schedule([made]), [given, made])
    loops = [part for part in post_order(module["main"].body) if isinstance(part, tir.For)]
    assert int(loops[0].extent) == lanes
    assert isinstance(loops[0].body, tir.Store) and loops[0].body.value.dtype.lanes == lanes


def test_operands_of_a_block_are_vectors() -> None:
    """Two operands of 16 channels in a padded block of 32: both are loaded as vectors, and no element by itself."""
    given = [te.placeholder((1, 1, 18, 18, 16), "uint8", name=name) for name in "ab"]
    joined = te.compute(
        (1, 1, 18, 18, 32),
        lambda n, c, h, w, i: tir.if_then_else(
            i // 16 < 1, given[0](n, c, h, w, i % 16), given[1](n, c, h, w, i % 16)
        ),
    )
    made = topi.add(joined, tir.const(3, "uint8"))
    with tvm.target.Target("llvm"):
        schedule = construct_schedule([made])
        lowered = tvm.lower(schedule, [*given, made])["main"]
        function = tvm.build(schedule, [*given, made], "llvm")
    loads = [part for part in post_order(lowered.body) if isinstance(part, tir.Load)]
    assert {load.dtype for load in loads} == {"uint8x16"}
    values = [
        np.random.default_rng(seed).integers(0, 200, (1, 1, 18, 18, 16)).astype("uint8") for seed in (1, 2)
    ]
    result = tvm.nd.empty((1, 1, 18, 18, 32), "uint8")
    function(*[tvm.nd.array(value) for value in values], result)
    np.testing.assert_array_equal(result.numpy(), np.concatenate(values, axis=4) + 3)


def test_smaller_blocks_are_vectors() -> None:
    """Blocks of 16 channels that become blocks of 64 are loaded as vectors of 16."""
    data = te.placeholder((1, 4, 12, 12, 16), "uint8", name="data")
    made = topi.layout_transform(data, "NCHW16c", "NCHW64c")
    with tvm.target.Target("llvm"):
        schedule = construct_schedule([made])
        lowered = tvm.lower(schedule, [data, made])["main"]
        function = tvm.build(schedule, [data, made], "llvm")
    loads = [part for part in post_order(lowered.body) if isinstance(part, tir.Load)]
    assert {load.dtype for load in loads} == {"uint8x16"}
    value = np.random.default_rng(1).integers(0, 200, (1, 4, 12, 12, 16)).astype("uint8")
    result = tvm.nd.empty((1, 1, 12, 12, 64), "uint8")
    function(tvm.nd.array(value), result)
    np.testing.assert_array_equal(result.numpy()[0, 0], value[0].transpose(1, 2, 0, 3).reshape(12, 12, 64))
