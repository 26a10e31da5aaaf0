"""Proposals for the choices of a schedule."""

from __future__ import annotations

import math

import pytest

from tilewright.schedule.decisions import decide
from tilewright.search.decision_search import DecisionSearch
from tilewright.support.errors import ScheduleError


def three_choices() -> None:
    """Two independent choices; a third only where the second is on."""
    rows = decide("rows", 4, lambda: [4, 6, 8])
    packs = decide("packs", False, lambda: [False, True])
    if packs:
        decide("block", 16, lambda: [16, 32])
    if rows == 8 and packs:
        raise ScheduleError("eight rows do not fit a packed tile")


def test_every_possible_schedule_is_proposed_once_and_the_constructed_one_never() -> None:
    """Choices that others open are found; combinations that the scheduler refuses are left out."""
    search = DecisionSearch(three_choices)
    assert search.has_choices and dict(search.constructed) == {"rows": 4, "packs": False}
    proposed = []
    while batch := search.propose(3):
        proposed += batch
        for one in batch:
            search.tell(one, 1.0)
    expected = {
        (rows, packs, block) for rows in (4, 6) for packs, block in ((False, None), (True, 16), (True, 32))
    }
    expected = (expected | {(8, False, None)}) - {(4, False, None)}
    found = [(dict(one)["rows"], dict(one)["packs"], dict(one).get("block")) for one in proposed]
    assert len(found) == len(set(found)) and set(found) == expected


def test_neighbours_of_the_best_come_first() -> None:
    """One choice is changed at a time, the values that the model ranks first before the others."""
    search = DecisionSearch(three_choices)
    first = [dict(one) for one in search.propose(2)]
    assert first == [{"rows": 6, "packs": False}, {"rows": 4, "packs": True, "block": 16}]
    best = next(one for one in search._proposed if dict(one) == {"rows": 4, "packs": True, "block": 16})
    search.tell(best, 0.5)
    search.keep_best(best)
    assert {"rows": 6, "packs": True, "block": 16} in [dict(one) for one in search.propose(2)]


def test_a_schedule_without_choices_has_nothing_to_search() -> None:
    """Neither where nothing is asked nor where only one value is possible."""
    assert not DecisionSearch(lambda: None).has_choices
    assert not DecisionSearch(lambda: decide("rows", 4, lambda: [4])).has_choices
    assert DecisionSearch(lambda: None).propose(5) == []


def many_choices() -> None:
    """A space of 7,680 schedules."""
    for name, values in SPACE.items():
        decide(name, values[0], lambda values=values: values)


SPACE = {
    "rows": (28, *range(1, 28), *range(29, 41)),
    "columns": (16, 8, 24, 32, 40, 48, 56, 64),
    "unroll": (1, 2, 4, 8),
    "packs": range(6),
}


def cost(choices: dict[str, int]) -> float:
    """A tile that fills the registers is best, and of those one with many columns: from one to the other, rows and
    columns have to change together."""
    area = choices["rows"] * choices["columns"] / 16
    unrolled = 0.1 * abs(choices["unroll"] - 4) + 0.05 * choices["packs"]
    return 1 + 2 * abs(math.log(area / 28)) + (64 - choices["columns"]) / 64 + unrolled


def trials_until(limit: float, learns: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """Trials until a schedule of at most this cost is found."""
    if not learns:
        monkeypatch.setattr("tilewright.search.decision_search.LEAST_MEASURED", 1 << 30)
    search = DecisionSearch(many_choices)
    search.tell(search.constructed, cost(dict(search.constructed)))
    best, trials = cost(dict(search.constructed)), 0
    while best > limit and (batch := search.propose(8)):
        for one in batch:
            trials += 1
            search.tell(one, cost(dict(one)))
            if cost(dict(one)) < best:
                best = cost(dict(one))
                search.keep_best(one)
    return trials


def test_a_learned_model_needs_fewer_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds one of the best of 7,680 schedules in half the trials."""
    pytest.importorskip("xgboost")
    learned = trials_until(1.3, True, monkeypatch)
    assert 2 * learned <= trials_until(1.3, False, monkeypatch)
