"""The cheapest assignment of states to variables whose costs are known alone and in pairs.

Variables are eliminated one by one: what the neighbours of a variable pay for its best state, for every combination of
theirs, becomes a cost of the neighbours. That is exact. For chains, residual blocks and branches that join again the
tables stay small; where they would not, the variable with the most neighbours takes the state that is best by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

LARGEST_TABLE: Final = 50_000
"""Entries of a table from which on a variable is fixed and not eliminated."""

Scope = tuple[int, ...]
Table = dict[tuple[int, ...], float]


def least_cost(
    alone: Sequence[Sequence[float]], pairs: Mapping[tuple[int, int], Sequence[Sequence[float]]]
) -> list[int]:
    """For each variable the number of its state.

    ``alone[v][s]`` is the cost of state ``s`` of variable ``v``; ``pairs[v, w][s][t]`` what states ``s`` of ``v`` and
    ``t`` of ``w`` cost together.
    """
    factors: list[tuple[Scope, Table]] = [
        ((v,), {(s,): cost for s, cost in enumerate(costs)}) for v, costs in enumerate(alone)
    ]
    for (v, w), costs in pairs.items():
        entries = {(s, t): cost for s, row in enumerate(costs) for t, cost in enumerate(row)}
        factors.append(((v, w), entries))
    sizes = [len(costs) for costs in alone]
    left = set(range(len(alone)))
    eliminated: list[tuple[int, Scope, dict[tuple[int, ...], int]]] = []
    while left:
        around = {v: _neighbours(v, factors) for v in left}
        entries_of = {v: _entries(around[v], sizes) * sizes[v] for v in left}
        chosen = min(left, key=lambda v: (entries_of[v], v))
        if entries_of[chosen] > LARGEST_TABLE:
            chosen = max(left, key=lambda v: (len(around[v]), -v))
            best = min(range(sizes[chosen]), key=lambda s: (_cost_alone(chosen, s, factors), s))
            eliminated.append((chosen, (), {(): best}))
            factors = [_fixed(factor, chosen, best) for factor in factors]
        else:
            scope = around[chosen]
            best_of, table = _eliminate(chosen, scope, sizes, [one for one in factors if chosen in one[0]])
            eliminated.append((chosen, scope, best_of))
            factors = [one for one in factors if chosen not in one[0]] + [(scope, table)]
        left.discard(chosen)
    states = [0] * len(alone)
    for variable, scope, best_of in reversed(eliminated):
        states[variable] = best_of[tuple(states[other] for other in scope)]
    return states


def _neighbours(variable: int, factors: Sequence[tuple[Scope, Table]]) -> Scope:
    return tuple(sorted({v for scope, _ in factors if variable in scope for v in scope} - {variable}))


def _entries(scope: Scope, sizes: Sequence[int]) -> int:
    count = 1
    for variable in scope:
        count *= sizes[variable]
    return count


def _eliminate(
    variable: int, scope: Scope, sizes: Sequence[int], factors: Sequence[tuple[Scope, Table]]
) -> tuple[dict[tuple[int, ...], int], Table]:
    """The best state of a variable for each combination of its neighbours' states, and what that costs."""
    best_of: dict[tuple[int, ...], int] = {}
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


def _cost_alone(variable: int, state: int, factors: Sequence[tuple[Scope, Table]]) -> float:
    """What a state costs if all others fall in with it."""
    return sum(
        min(cost for states, cost in table.items() if states[scope.index(variable)] == state)
        for scope, table in factors
        if variable in scope
    )


def _fixed(factor: tuple[Scope, Table], variable: int, state: int) -> tuple[Scope, Table]:
    """A factor with one variable's state known."""
    scope, table = factor
    if variable not in scope:
        return factor
    place = scope.index(variable)
    left = {
        states[:place] + states[place + 1 :]: cost for states, cost in table.items() if states[place] == state
    }
    return scope[:place] + scope[place + 1 :], left
