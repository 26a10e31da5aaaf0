"""Random decisions: what they may be, that a seed fixes them, and that the trace keeps them."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tir.schedule.programs import elementwise, matmul, refused

import tilewright as tvm
from tilewright import tir
from tilewright.script import tir as T


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 4), limit=st.sampled_from([-1, 1, 2, 16]))
def test_perfect_tiles(seed: int, n: int, limit: int) -> None:
    """The product of the factors is the extent, and the last keeps its limit."""
    schedule = tir.Schedule(elementwise(24, 5).function, seed=seed)
    i, _ = schedule.get_loops(schedule.get_block("B"))
    factors = [schedule.get(one) for one in schedule.sample_perfect_tile(i, n, max_innermost_factor=limit)]
    assert len(factors) == n and math.prod(factors) == 24
    assert limit == -1 or n == 1 or factors[-1] <= limit


def test_every_tile_is_drawn() -> None:
    """All the ways to cut six in two come up."""
    schedule = tir.Schedule(elementwise(6, 5).function, seed=3)
    i, _ = schedule.get_loops(schedule.get_block("B"))
    drawn = {tuple(schedule.get(one) for one in schedule.sample_perfect_tile(i, 2)) for _ in range(60)}
    assert drawn == {(1, 6), (2, 3), (3, 2), (6, 1)}


def test_categories() -> None:
    """Candidates come up as their probabilities say."""
    schedule = tir.Schedule(matmul().function, seed=5)
    drawn = Counter(schedule.get(schedule.sample_categorical([2, 4, 8], [0.5, 0.0, 0.5])) for _ in range(200))
    assert set(drawn) == {2, 8} and 70 < drawn[2] < 130
    assert schedule.get(schedule.sample_categorical([2, 4, 8], [0.5, 0.0, 0.5], decision=1)) == 4


def tiled(seed: int) -> tir.Schedule:
    """A schedule with two decisions."""
    schedule = tir.Schedule(matmul(24, 16, 10).function, seed=seed)
    i, j, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.split(i, schedule.sample_perfect_tile(i, 3, decision=[2, 3, 4]))
    schedule.split(j, [None, schedule.sample_categorical([4, 8], [0.5, 0.5], decision=1)])
    return schedule


def test_decisions_in_the_trace() -> None:
    """They are printed, written and replayed, whatever the seed."""
    schedule = tiled(0)
    text = schedule.trace.as_python()
    assert (
        text[2]
        == "v4, v5, v6 = sch.sample_perfect_tile(loop=l1, n=3, max_innermost_factor=16, decision=[2, 3, 4])"
    )
    assert text[3] == "l7, l8, l9 = sch.split(loop=l1, factors=[v4, v5, v6])"
    assert text[4] == "v10 = sch.sample_categorical(candidates=[4, 8], probs=[0.5, 0.5], decision=1)"
    assert text[5] == "l11, l12 = sch.split(loop=l2, factors=[None, v10])"
    written = schedule.trace.as_json()
    assert written[1] == [[2, [2, 3, 4]], [4, 1]]
    for seed in (1, 2):
        again = tir.Schedule(matmul(24, 16, 10).function, seed=seed)
        tir.schedule.Trace.apply_json_to_schedule(written, again)
        tvm.ir.assert_structural_equal(again.mod, schedule.mod)


def test_other_decisions() -> None:
    """One decision exchanged, or all given by a function."""
    schedule = tiled(0)
    sampling = schedule.trace.insts[2]
    assert [one.value for one in schedule.trace.decisions[sampling]] == [2, 3, 4]
    assert schedule.trace.get_decision(sampling) == [2, 3, 4]
    changed = schedule.trace.with_decision(sampling, [4, 3, 2], remove_postproc=True)
    again = tir.Schedule(matmul(24, 16, 10).function)
    changed.apply_to_schedule(again, remove_postproc=False)
    extents = [int(again.get(one).extent) for one in again.get_loops(again.get_block("C"))]
    assert extents == [4, 3, 2, 2, 8, 10] and schedule.trace.get_decision(sampling) == [2, 3, 4]

    def provide(inst: object, inputs: object, attrs: object, decision: object) -> object:
        return [6, 2, 2] if inst is sampling else 0

    other = tir.Schedule(matmul(24, 16, 10).function)
    schedule.trace.apply_to_schedule(other, remove_postproc=False, decision_provider=provide)
    assert [int(other.get(one).extent) for one in other.get_loops(other.get_block("C"))] == [
        6,
        2,
        2,
        4,
        4,
        10,
    ]
    with pytest.raises(tvm.TVMError, match="Split does not take a decision"):
        schedule.trace.with_decision(schedule.trace.insts[3], [1], remove_postproc=True)


def test_samples_that_nobody_uses() -> None:
    """They are left out of a simplified trace."""
    schedule = tiled(0)
    schedule.sample_categorical([1, 2], [1.0, 1.0])
    assert len(schedule.trace) == 7 and len(schedule.trace.simplified(True)) == 6


def test_refuses() -> None:
    """Probabilities that are none, decisions that do not fit, loops of unknown length."""
    schedule = tir.Schedule(elementwise(12, 10).function)
    i, _ = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.sample_categorical([1, 2], [1.0]), "2 candidates and 1 probabilities")
    refused(schedule, lambda: schedule.sample_categorical([1, 2], [-1.0, 2.0]), "none may be negative")
    refused(
        schedule,
        lambda: schedule.sample_categorical([1], [1.0], decision=1),
        "the number of none of 1 candidates",
    )
    refused(
        schedule,
        lambda: schedule.sample_perfect_tile(i, 2, decision=[5, 2]),
        "not 2 factors with the product 12",
    )
    refused(schedule, lambda: schedule.sample_perfect_tile(i, 0), "0 factors are requested")
    refused(schedule, lambda: schedule.sample_perfect_tile(i, 2, 0), "max_innermost_factor is 0")

    @T.prim_func
    def program(b: T.handle, n: T.int32) -> None:
        B = T.match_buffer(b, (n,))
        for i in T.serial(0, n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = 1.0

    schedule = tir.Schedule(program)
    (i,) = schedule.get_loops(schedule.get_block("B"))
    refused(schedule, lambda: schedule.sample_perfect_tile(i, 2), "its extent, n, is not a constant")
