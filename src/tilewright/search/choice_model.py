"""Learns from measured choices which others are worth measuring."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.schedule.decisions import Decision
from tilewright.search.trees import Trees, has_trees

LEAST_MEASURED = 16
"""Fewer say too little."""
_ROUNDS = 40


def rank(
    costs: Mapping[tuple[tuple[str, Any], ...], float],
    space: Mapping[str, Decision],
    possible: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Possible choices, those of the least predicted cost first; in their own order where little is known, or where
    there is no package to learn with."""
    known = [(dict(choices), cost) for choices, cost in costs.items() if 0 < cost < math.inf]
    if len(known) < LEAST_MEASURED or not possible or not has_trees():
        return list(possible)
    model = Trees("reg", rounds=_ROUNDS)
    # Ratios matter, not differences: twice as slow is as far from the best as twice as fast.
    model.fit([features(choices, space) for choices, _ in known], [-math.log(cost) for _, cost in known])
    scores = model.predict([features(choices, space) for choices in possible])
    order = sorted(range(len(possible)), key=lambda place: -float(scores[place]))
    return [possible[place] for place in order]


def features(choices: Mapping[str, Any], space: Mapping[str, Decision]) -> list[float]:
    """A row of numbers: for every choice its place in the scheduler's ranking, and the numbers that it consists of."""
    row: list[float] = []
    for name, decision in space.items():
        width = max(len(_numbers(one)) for one in decision.candidates)
        if name not in choices:
            row += [math.nan] * (width + 1)
            continue
        value = choices[name]
        place = decision.candidates.index(value) if value in decision.candidates else -1
        numbers = _numbers(value)
        row += [float(place), *numbers, *([math.nan] * (width - len(numbers)))]
    return row


def _numbers(value: Any) -> list[float]:
    if isinstance(value, (bool, int, float)):
        return [float(value)]
    if isinstance(value, tuple):
        return [number for part in value for number in _numbers(part)]
    return []
