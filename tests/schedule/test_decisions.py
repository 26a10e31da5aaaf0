"""The choices of constructed schedules: what is asked, what is answered, and that code without a tuner is as before."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.schedule import schedule
from tilewright.schedule.decisions import Decisions, decide
from tilewright.support.errors import ScheduleError


def product(size: int) -> list[te.Tensor]:
    """A, B, and their product."""
    left, right = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    return [left, right, te.compute((size, size), lambda i, j: te.sum(left[i, k] * right[k, j], k), name="C")]


def test_without_a_tuner_the_scheduler_chooses() -> None:
    """And nobody lists what else there is."""

    def never() -> list[int]:
        raise AssertionError

    assert decide("tile", 3, never) == 3


def test_answers_by_name() -> None:
    """Given values are taken, others are the scheduler's; both are noted."""
    with Decisions({"a": 2, "c": [1, 2]}) as decisions:
        assert decide("a", 1, lambda: [1, 2, 3]) == 2
        assert decide("b", "x", lambda: ["x", "y"]) == "x"
        assert decide("c", (2, 1), lambda: [(1, 2)]) == (1, 2)
        assert decide("a", 5, lambda: [6]) == 5
    assert {name: one.chosen for name, one in decisions.asked.items()} == {
        "a": 2,
        "b": "x",
        "c": (1, 2),
        "a.1": 5,
    }
    assert decisions.asked["c"].candidates == ((2, 1), (1, 2))
    assert decisions.unused == []
    assert decide("a", 1, list) == 1


def test_a_value_that_is_not_possible() -> None:
    """It is refused, with what is possible."""
    with (
        Decisions({"tile": 7}),
        pytest.raises(ScheduleError, match=r"'tile' cannot be 7 here: it is one of 1, 2"),
    ):
        decide("tile", 1, lambda: [1, 2])


def test_a_product_with_every_tile_computes_the_same() -> None:
    """The register tile is a choice: the first of the candidates is the constructed one, and all are right."""
    with tvm.target.Target("llvm"):
        arguments = product(37)
        with Decisions() as decisions:
            schedule(arguments[-1])
        tiles = decisions.asked["tile"].candidates
        assert len(tiles) > 8
        assert decisions.asked["tile"].chosen == tiles[0]
        generator = np.random.default_rng(0)
        left, right = generator.standard_normal((2, 37, 37)).astype("float32")
        result = tvm.nd.empty((37, 37))
        for tile in tiles[:: len(tiles) // 4]:
            with Decisions({"tile": tile}):
                made = schedule(arguments[-1])
            tvm.build(made, arguments)(tvm.nd.array(left), tvm.nd.array(right), result)
            np.testing.assert_allclose(result.numpy(), left @ right, rtol=1e-4, atol=1e-4)
