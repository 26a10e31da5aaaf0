"""The cheapest assignment of states to variables with unary and pairwise costs.

Variables are eliminated one by one: the cost of the best state of a variable, for every combination of its neighbours'
states, becomes a cost of the neighbours. That is exact. For chains, residual blocks and branches that join again the
tables stay small; otherwise the variable with the most neighbours is fixed to the state that is best by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from itertools import product
from math import prod
from typing import Final

LARGEST_TABLE: Final = 50_000
"""The table size above which a variable is fixed instead of eliminated."""

Scope = tuple[int, ...]
Table = dict[tuple[int, ...], float]
Factor = tuple[Scope, Table]
Best = dict[tuple[int, ...], int]


def least_cost(
    variable_costs: Sequence[Sequence[float]], pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]]
) -> list[int]:
    """For each variable the number of its state.

    ``variable_costs[v][s]`` is the cost of state ``s`` of variable ``v``; ``pairs[v, w][s][t]`` what states ``s`` of
    ``v`` and ``t`` of ``w`` cost together.
    """
    problem = _Problem([len(costs) for costs in variable_costs])
    for v, costs in enumerate(variable_costs):
        problem.add((v,), {(s,): cost for s, cost in enumerate(costs)})
    for (v, w), rows in pairs.items():
        problem.add((v, w), {(s, t): cost for s, row in enumerate(rows) for t, cost in enumerate(row)})
    eliminated: list[tuple[int, Scope, Best]] = []
    while (chosen := problem.smallest()) is not None:
        eliminated.append(problem.eliminate(chosen))
    states = [0] * len(variable_costs)
    for variable, scope, best_of in reversed(eliminated):
        states[variable] = best_of[tuple(states[other] for other in scope)]
    return states


class _Problem:
    """The remaining factors, by their variables."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.factors: list[dict[int, Factor]] = [{} for _ in sizes]
        self.left = set(range(len(sizes)))
        self.queue: list[tuple[int, int]] = []
        self.added = 0

    def add(self, scope: Scope, table: Table) -> None:
        """Add a factor."""
        for variable in scope:
            self.factors[variable][self.added] = scope, table
        self.added += 1
        for variable in scope:
            heappush(self.queue, (self._entries(variable), variable))

    def smallest(self) -> int | None:
        """The variable to eliminate next: the one with the smallest table; where even that is too large, the one with
        the most neighbours."""
        while self.queue:
            entries, variable = heappop(self.queue)
            if variable not in self.left or entries != self._entries(variable):
                continue
            if entries <= LARGEST_TABLE:
                return variable
            heappush(self.queue, (entries, variable))
            return max(self.left, key=lambda one: (len(self._neighbours(one)), -one))
        return None

    def eliminate(self, variable: int) -> tuple[int, Scope, Best]:
        """Take a variable out; gives its best state for each combination of its neighbours' states."""
        scope = self._neighbours(variable)
        factors = self.factors[variable]
        too_large = self._entries(variable) > LARGEST_TABLE
        self.left.discard(variable)
        for number, (over, _) in list(factors.items()):
            for other in over:
                if other != variable:
                    del self.factors[other][number]
        if too_large:
            best = min(
                range(self.sizes[variable]), key=lambda s: (_variable_cost(variable, s, factors.values()), s)
            )
            for factor in factors.values():
                self.add(*_fixed(factor, variable, best))
            return variable, (), {(): best}
        best_of, table = _eliminate(variable, scope, self.sizes, list(factors.values()))
        self.add(scope, table)
        return variable, scope, best_of

    def _neighbours(self, variable: int) -> Scope:
        return tuple(sorted({v for over, _ in self.factors[variable].values() for v in over} - {variable}))

    def _entries(self, variable: int) -> int:
        return prod(self.sizes[v] for v in (variable, *self._neighbours(variable)))


def _eliminate(
    variable: int, scope: Scope, sizes: Sequence[int], factors: Collection[Factor]
) -> tuple[Best, Table]:
    """The best state of a variable for each combination of its neighbours' states, and what that costs."""
    best_of: Best = {}
    table: Table = {}
    for others in product(*[range(sizes[other]) for other in scope]):
        states = dict(zip(scope, others, strict=True))
        costs = []
        for state in range(sizes[variable]):
            states[variable] = state
            costs.append(sum(entries[tuple(states[v] for v in over)] for over, entries in factors))
        best_of[others] = min(range(len(costs)), key=costs.__getitem__)
        table[others] = costs[best_of[others]]
    return best_of, table


def _variable_cost(variable: int, state: int, factors: Collection[Factor]) -> float:
    """The cost of a state if all other variables are chosen in its favour."""
    return sum(
        min(cost for states, cost in table.items() if states[scope.index(variable)] == state)
        for scope, table in factors
        if variable in scope
    )


def _fixed(factor: Factor, variable: int, state: int) -> Factor:
    """A factor with one variable's state known."""
    scope, table = factor
    if variable not in scope:
        return factor
    place = scope.index(variable)
    left = {
        states[:place] + states[place + 1 :]: cost for states, cost in table.items() if states[place] == state
    }
    return scope[:place] + scope[place + 1 :], left
