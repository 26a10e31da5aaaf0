"""Proposes values for the choices of one constructed schedule.

It starts from the constructed schedule and changes one choice at a time, in the order in which the scheduler's model
ranks what is possible; then several at once, preferring values that did well. When enough was measured, a learned model
says what is tried next. A proposal is never made twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any

from tilewright.schedule.decisions import Decision, Decisions
from tilewright.search.choice_model import LEAST_MEASURED, rank
from tilewright.support.errors import TilewrightError

Assignment = tuple[tuple[str, Any], ...]
"""Every choice that a schedule asked for, with the value it got, by name."""

_TRIES = 200
_MIXED = 256
"""Mixtures of good choices that the model may choose from."""


class DecisionSearch:
    """The choices of what ``construct`` makes, and what is known of them. Costs are relative: 1 is the constructed
    schedule."""

    def __init__(self, construct: Callable[[], object], seed: int = 0) -> None:
        self.construct = construct
        self.random = random.Random(seed)
        self.space: dict[str, Decision] = {}
        self.costs: dict[Assignment, float] = {}
        self._proposed: set[Assignment] = set()
        self.constructed = self._asked({})
        self.best: Assignment = self.constructed
        self._proposed.add(self.constructed)

    def _asked(self, given: Mapping[str, Any]) -> Assignment:
        """All choices that a schedule with some given values makes."""
        with Decisions(given) as decisions:
            self.construct()
        for name, decision in decisions.asked.items():
            self.space.setdefault(name, decision)
        return tuple(sorted((name, decision.chosen) for name, decision in decisions.asked.items()))

    @property
    def has_choices(self) -> bool:
        """True if there is anything to search."""
        return any(len(decision.candidates) > 1 for decision in self.space.values())

    def tell(self, assignment: Assignment, cost: float) -> None:
        """What some choices cost; infinite for a failure."""
        self._proposed.add(assignment)
        self.costs[assignment] = min(cost, self.costs.get(assignment, float("inf")))

    def keep_best(self, assignment: Assignment) -> None:
        """Search around these choices from now on."""
        self.best = assignment

    def propose(self, count: int) -> list[Assignment]:
        """At most so many choices that were not proposed before; none when there are no others."""
        found: list[Assignment] = []
        neighbours = [one for one in self._neighbours() if tuple(sorted(one.items())) not in self._proposed]
        if len(self.costs) >= LEAST_MEASURED:
            # Half goes on in the scheduler's order: the model knows little of what was never tried.
            mixed = [self._mixed() for _ in range(_MIXED)]
            self._fill(found, count // 2, rank(self.costs, self.space, mixed))
        self._fill(found, count, neighbours)
        self._fill(found, count, [self._mixed() for _ in range(_TRIES)] if len(found) < count else [])
        return found

    def _fill(self, found: list[Assignment], count: int, possible: Iterable[Mapping[str, Any]]) -> None:
        """Add what is new until there are so many."""
        for given in possible:
            if len(found) >= count:
                return
            self._add(found, given)

    def _add(self, found: list[Assignment], given: Mapping[str, Any]) -> None:
        guess = tuple(sorted(given.items()))
        if guess in self._proposed:
            return
        try:
            assignment = self._asked(given)
        except TilewrightError:
            # This combination is not possible; it may also be one that another order of names would allow.
            self._proposed.add(guess)
            return
        self._proposed.add(guess)
        if assignment not in self.costs and assignment not in found and assignment != self.constructed:
            self._proposed.add(assignment)
            found.append(assignment)

    def _neighbours(self) -> list[dict[str, Any]]:
        """The best with one choice changed: the values ranked first of every choice, then the second, and so on."""
        best = dict(self.best)
        columns = [
            [{**best, name: value} for value in decision.candidates if value != best[name]]
            for name, decision in self.space.items()
            if name in best
        ]
        return [one for row in zip_longest(*columns) for one in row if one is not None]

    def _mixed(self) -> dict[str, Any]:
        """The best, or another good one, with two or more choices changed."""
        known = [one for one, cost in self.costs.items() if cost < float("inf")]
        good = sorted(known, key=lambda one: self.costs[one])[:8]
        start = dict(self.random.choice(good) if good and self.random.random() < 0.5 else self.best)
        names = [name for name in start if name in self.space and len(self.space[name].candidates) > 1]
        if not names:
            return start
        for name in self.random.sample(names, min(len(names), 2 + (self.random.random() < 0.3))):
            start[name] = self._value(name)
        return start

    def _value(self, name: str) -> Any:
        """A value for a choice: as a rule one that did well with others, sometimes any."""
        candidates = self.space[name].candidates
        if self.random.random() < 0.5:
            return self.random.choice(candidates)
        known: dict[Any, float] = {}
        for assignment, cost in self.costs.items():
            value = dict(assignment).get(name)
            if value is not None:
                known[value] = min(cost, known.get(value, float("inf")))
        ranked = sorted(known, key=lambda value: known[value])[:4]
        return self.random.choice(ranked or candidates)
