"""The memory plan: nothing that is needed at one time shares bytes, and what is not, does."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tilewright.relay.backend.aot.plan import Place, Region, plan_memory
from tilewright.relay.backend.graph import Entry
from tilewright.relay.backend.graph_read import read_graph
from tilewright.runtime import ndarray
from tilewright.support.arena import ALIGNMENT, Request, plan_blocks

requests = st.builds(
    lambda size, first, length: Request(size, first, first + length),
    st.integers(0, 1000),
    st.integers(0, 12),
    st.integers(0, 6),
)


@given(st.lists(requests, max_size=25))
def test_no_two_meet(wanted: list[Request]) -> None:
    """Requests that live at the same step are apart; all are aligned and inside the arena."""
    offsets, total = plan_blocks([[request] for request in wanted])
    for index, (one, at) in enumerate(zip(wanted, offsets, strict=True)):
        assert at % ALIGNMENT == 0 and at + one.size <= total
        for other, there in zip(wanted[:index], offsets[:index], strict=True):
            if one.first <= other.last and other.first <= one.last:
                assert at + one.size <= there or there + other.size <= at
    busiest = max((sum(r.size for r in wanted if r.first <= step <= r.last) for step in range(20)), default=0)
    assert total >= busiest


def test_a_chain_needs_two_places() -> None:
    """A chain of steps, each reading what the one before wrote, goes back and forth between two places."""
    offsets, total = plan_blocks([[Request(256, step, step + 1)] for step in range(10)])
    assert total == 512
    assert offsets == [0, 256] * 5


def test_a_gap_is_used() -> None:
    """A small request goes between two large ones where there is room."""
    offsets, total = plan_blocks(
        [[Request(640, 0, 9)], [Request(128, 3, 4)], [Request(320, 0, 2)], [Request(320, 3, 5)]]
    )
    assert total == 640 + 320 + 128
    assert offsets[2] == offsets[3] == 640


def test_places(model: Any) -> None:
    """Inputs and outputs lie with the caller, parameters among the constants, the rest in the workspace."""
    graph = read_graph(model.graph)
    graph.nodes[1].value = ndarray.array(model.weight)
    plan = plan_memory(graph, {3: 2112})
    assert plan.places[Entry(0)] == Place(Region.INPUT, 0)
    assert plan.places[Entry(1)] == Place(Region.CONSTANT, 0) and plan.constants_size == 64 * 64 * 4
    assert plan.places[Entry(2)].region is plan.places[Entry(3)].region is Region.WORKSPACE
    assert plan.places[Entry(4)] == plan.places[Entry(3)]
    written = [Entry(5), Entry(5, 1), Entry(6)]
    assert [plan.places[entry] for entry in written] == [Place(Region.OUTPUT, n) for n in range(3)]
    assert plan.copies == ((Entry(0), 3), (Entry(6), 4))
    # While softmax runs, what it reads, what it writes and its scratch memory are all in use.
    assert plan.workspace_size == 2048 + 2048 + 2112
    graph.nodes[0].value = ndarray.array(model.value)
    assert plan_memory(graph, {}).inputs == ()
