"""least_cost: no assignment is cheaper, and large problems end."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.relay.target.cpu import least_cost as module
from tilewright.relay.target.cpu.least_cost import least_cost

COSTS = st.integers(0, 20).map(float)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[list[float]], dict[tuple[int, int], list[list[float]]]]:
    """Up to five variables of up to three states, and costs between any two of them."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    variable_costs = [draw(st.lists(COSTS, min_size=size, max_size=size)) for size in sizes]
    pairs = {}
    for v in range(len(sizes)):
        for w in range(v + 1, len(sizes)):
            if draw(st.booleans()):
                row = st.lists(COSTS, min_size=sizes[w], max_size=sizes[w])
                pairs[v, w] = draw(st.lists(row, min_size=sizes[v], max_size=sizes[v]))
    return variable_costs, pairs


def cost(
    variable_costs: list[list[float]], pairs: dict[tuple[int, int], list[list[float]]], states: list[int]
) -> float:
    """What an assignment costs."""
    total = sum(costs[state] for costs, state in zip(variable_costs, states, strict=True))
    return total + sum(costs[states[v]][states[w]] for (v, w), costs in pairs.items())


@settings(deadline=None, max_examples=60)
@given(problems())
def test_nothing_is_cheaper(
    problem: tuple[list[list[float]], dict[tuple[int, int], list[list[float]]]],
) -> None:
    """Compared with all assignments."""
    variable_costs, pairs = problem
    best = min(
        cost(variable_costs, pairs, list(states))
        for states in product(*[range(len(costs)) for costs in variable_costs])
    )
    assert cost(variable_costs, pairs, least_cost(variable_costs, pairs)) == best


def test_a_long_chain_is_solved_exactly() -> None:
    """Neighbours want the same state; the ends want different ones, and one link is cheap to break."""
    count = 500
    variable_costs = [[0.0, 0.0] for _ in range(count)]
    variable_costs[0], variable_costs[-1] = [0.0, 9.0], [9.0, 0.0]
    pairs = {
        (v, v + 1): [[0.0, 1.0 if v == 321 else 2.0], [1.0 if v == 321 else 2.0, 0.0]]
        for v in range(count - 1)
    }
    assert least_cost(variable_costs, pairs) == [0] * 322 + [1] * (count - 322)


def test_where_all_know_all_a_variable_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve variables that all differ from one another at a cost: they agree, on the state that is cheapest."""
    monkeypatch.setattr(module, "LARGEST_TABLE", 30)
    variable_costs = [[1.0, 0.0, 2.0] for _ in range(12)]
    apart = [[0.0 if s == t else 5.0 for t in range(3)] for s in range(3)]
    pairs = {(v, w): apart for v in range(12) for w in range(v + 1, 12)}
    assert least_cost(variable_costs, pairs) == [1] * 12
