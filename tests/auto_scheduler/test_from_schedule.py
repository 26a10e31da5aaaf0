"""Constructed schedules as states: what the population of a search starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.auto_scheduler.computations import matmul

import tilewright as tvm
from tilewright import te, topi
from tilewright.auto_scheduler import ComputeDAG, State
from tilewright.auto_scheduler.from_schedule import untranslated
from tilewright.auto_scheduler.steps import SplitStep
from tilewright.compile import schedule_to_module
from tilewright.schedule import schedule as construct


def convolution() -> list[Any]:
    data = te.placeholder((1, 16, 14, 14), name="data")
    weight = te.placeholder((32, 16, 3, 3), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.conv2d_nchw(data, weight, 1, 1, 1))]


def depthwise() -> list[Any]:
    data = te.placeholder((1, 16, 15, 15), name="data")
    weight = te.placeholder((16, 1, 3, 3), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1)]


def softmax() -> list[Any]:
    data = te.placeholder((17, 33), name="data")
    return [data, topi.nn.softmax(data)]


def pooling() -> list[Any]:
    data = te.placeholder((1, 8, 14, 14), name="data")
    return [data, topi.nn.pool2d(data, [2, 2], [2, 2], [1, 1], [0] * 4, "max")]


def total() -> list[Any]:
    data = te.placeholder((10, 1000), name="data")
    return [data, topi.sum(data, axis=1)]


def transposition() -> list[Any]:
    data = te.placeholder((40, 50), name="data")
    return [data, topi.transpose(data)]


@pytest.mark.parametrize(
    "make",
    [matmul, lambda: matmul(37, 53, 71), convolution, depthwise, softmax, pooling, total, transposition],
    ids=["matmul", "odd_matmul", "convolution", "depthwise", "softmax", "pooling", "total", "transposition"],
)
def test_a_constructed_schedule_is_a_state_with_the_same_loops(make: Callable[[], list[Any]]) -> None:
    dag = ComputeDAG(make())
    target = tvm.target.Target("llvm -mcpu=skylake-avx512 -num-cores=4")
    with target:
        schedule = construct(dag.output_tensors, target)
    assert untranslated(schedule, dag) is None
    state = State.from_schedule(schedule, dag)
    assert state is not None
    again, tensors = dag.apply_steps_from_state(state)
    tvm.ir.assert_structural_equal(
        schedule_to_module(again, tensors), schedule_to_module(schedule, dag.tensors)
    )


def test_splits_of_splits_become_one_tiling() -> None:
    """A search sees the tile sizes of an axis together."""
    a, b, c = matmul()
    schedule = te.create_schedule(c.op)
    outer, _ = schedule[c].split(schedule[c].op.axis[1], factor=2)
    schedule[c].split(outer, factor=4)
    state = State.from_schedule(schedule, ComputeDAG([a, b, c]))
    assert state is not None
    assert state.transform_steps == (SplitStep(2, 1, 16, (4, 2), True),)


def test_what_has_no_step_is_said() -> None:
    a, b, c = matmul()
    dag = ComputeDAG([a, b, c])
    schedule = te.create_schedule(c.op)
    schedule[c].prefetch(a, schedule[c].op.axis[0], 1)
    assert State.from_schedule(schedule, dag) is None
    assert untranslated(schedule, dag) == "there is no step for s[C].prefetch(A, s[C].op.axis[0], 1)"
    schedule = te.create_schedule(c.op)
    schedule[c].split(schedule[c].op.axis[0], factor=te.var("n"))
    assert "n is not a constant" in str(untranslated(schedule, dag))
    other = te.create_schedule(matmul()[2].op)
    assert untranslated(other, dag) == "operation A is not part of the schedule"
