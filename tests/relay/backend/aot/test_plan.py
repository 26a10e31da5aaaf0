"""The memory plan: nothing that is needed at one time shares bytes, and what is not, does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.relay.backend.aot.graph import read_graph
from tilewright.relay.backend.aot.plan import Place, Region, plan_memory
from tilewright.support.arena import ALIGNMENT, Request, plan_arena
from tilewright.support.errors import ModelError

requests = st.builds(
    lambda size, first, length: Request(size, first, first + length),
    st.integers(0, 1000),
    st.integers(0, 12),
    st.integers(0, 6),
)


@given(st.lists(requests, max_size=25))
def test_no_two_meet(wanted: list[Request]) -> None:
    """Requests that live at the same step are apart; all are aligned and inside the arena."""
    offsets, total = plan_arena(wanted)
    for index, (one, at) in enumerate(zip(wanted, offsets, strict=True)):
        assert at % ALIGNMENT == 0 and at + one.size <= total
        for other, there in zip(wanted[:index], offsets[:index], strict=True):
            if one.first <= other.last and other.first <= one.last:
                assert at + one.size <= there or there + other.size <= at
    busiest = max((sum(r.size for r in wanted if r.first <= step <= r.last) for step in range(20)), default=0)
    assert total >= busiest


def test_a_chain_needs_two_places() -> None:
    """A chain of steps, each reading what the one before wrote, goes back and forth between two places."""
    offsets, total = plan_arena([Request(256, step, step + 1) for step in range(10)])
    assert total == 512
    assert offsets == [0, 256] * 5


def test_a_gap_is_used() -> None:
    """A small request goes between two large ones where there is room."""
    offsets, total = plan_arena(
        [Request(640, 0, 9), Request(128, 3, 4), Request(320, 0, 2), Request(320, 3, 5)]
    )
    assert total == 640 + 320 + 128
    assert offsets[2] == offsets[3] == 640


def test_places(model: Any) -> None:
    """Inputs and outputs lie with the caller, parameters among the constants, the rest in the workspace."""
    graph = read_graph(model.graph)
    plan = plan_memory(graph, ["w"], {3: 2112})
    assert plan.tensors[0] == Place(Region.INPUT, 0)
    assert plan.tensors[1] == Place(Region.CONSTANT, 0) and plan.constants_size == 64 * 64 * 4
    assert plan.tensors[2].region is plan.tensors[3].region is Region.WORKSPACE
    assert plan.tensors[4] == plan.tensors[3]
    assert [place.region for place in plan.tensors[5:]] == [Region.OUTPUT] * 3
    assert plan.copies == ((0, 3), (7, 4))
    # While softmax runs, what it reads, what it writes and its scratch memory are all in use.
    assert plan.workspace_size == 2048 + 2048 + 2112
    assert plan_memory(graph, ["w", "x"], {}).inputs == ()


def test_errors(model: Any) -> None:
    """An input node that nobody gives a value for, and views that are none, are errors."""
    graph = json.loads(model.graph)
    with pytest.raises(ModelError, match="'x' is neither an input nor a parameter"):
        plan_memory(read_graph(json.dumps({**graph, "arg_nodes": [1]})), ["w"], {})
    graph["nodes"][4]["inputs"] = []
    with pytest.raises(ModelError, match="'reshape' renames a tensor, and has none"):
        plan_memory(read_graph(json.dumps(graph)), ["w"], {})
    graph["nodes"][4]["inputs"] = [[1, 0, 0]]
    with pytest.raises(ModelError, match="renames a tensor to one of another size"):
        plan_memory(read_graph(json.dumps(graph)), ["w"], {})
