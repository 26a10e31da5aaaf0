"""Memory for many tensors in one block."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.support.arena import (
    ALIGNMENT,
    Request,
    largest_live_blocks,
    plan_blocks,
    rounded,
)


def largest_live_set(wanted: Sequence[Request]) -> int:
    """The bound for requests that are each a block."""
    return largest_live_blocks([[request] for request in wanted])


def plan_arena(wanted: Sequence[Request]) -> tuple[list[int], int]:
    """The plan for requests that are each a block."""
    return plan_blocks([[request] for request in wanted])


requests = st.lists(
    st.builds(
        lambda size, first, length: Request(size, first, first + length),
        st.integers(0, 5000),
        st.integers(0, 40),
        st.integers(0, 20),
    ),
    max_size=40,
)


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 64), (64, 64), (65, 128), (640, 640)])
def test_rounding(size: int, expected: int) -> None:
    """Sizes are rounded up to whole cache lines."""
    assert rounded(size) == expected


@given(requests)
@settings(max_examples=200, deadline=None)
def test_nothing_overlaps(given_requests: list[Request]) -> None:
    """Two requests that live at the same time have separate bytes, aligned, within the arena."""
    offsets, total = plan_arena(given_requests)
    assert len(offsets) == len(given_requests)
    for number, (one, offset) in enumerate(zip(given_requests, offsets, strict=True)):
        assert offset % ALIGNMENT == 0
        assert offset + rounded(one.size) <= total
        for other, place in zip(given_requests[:number], offsets[:number], strict=True):
            if one.first <= other.last and other.first <= one.last:
                assert (
                    offset + one.size <= place or place + other.size <= offset or 0 in (one.size, other.size)
                )


@given(requests)
@settings(max_examples=100, deadline=None)
def test_the_arena_is_no_smaller_than_what_lives_at_once(given_requests: list[Request]) -> None:
    """And no larger than all together."""
    _, total = plan_arena(given_requests)
    assert largest_live_set(given_requests) <= total <= sum(rounded(one.size) for one in given_requests)


@st.composite
def blocks(draw: st.DrawFn) -> list[list[Request]]:
    """Blocks of parts that follow one another."""
    made = []
    for _ in range(draw(st.integers(0, 12))):
        offset, parts = 0, []
        for one in draw(st.lists(requests.map(lambda many: many[:1]), min_size=1, max_size=4)):
            for request in one:
                parts.append(Request(request.size, request.first, request.last, offset))
                offset += request.size
        made.append(parts)
    return made


@given(blocks())
@settings(max_examples=100, deadline=None)
def test_parts_of_blocks(given_blocks: list[list[Request]]) -> None:
    """Parts keep their places in their block, which begins at a whole line, and meet no part of another block."""
    offsets, total = plan_blocks(given_blocks)
    assert largest_live_blocks(given_blocks) <= total
    for number, (one, base) in enumerate(zip(given_blocks, offsets, strict=True)):
        assert base % ALIGNMENT == 0
        for part in one:
            start, end = base + part.offset, base + part.offset + part.size
            assert end <= total
            for other, place in zip(given_blocks[:number], offsets[:number], strict=True):
                for there in other:
                    if 0 in (part.size, there.size) or part.first > there.last or there.first > part.last:
                        continue
                    assert end <= place + there.offset or place + there.offset + there.size <= start


def test_what_a_block_does_not_need_yet_is_free() -> None:
    """A part that is written late has other tensors in its place before."""
    grown = [Request(128, 0, 9, 0), Request(128, 8, 9, 128)]
    assert plan_blocks([grown, [Request(128, 2, 3)], [Request(128, 4, 5)]]) == ([0, 128, 128], 256)


def test_nothing_to_place() -> None:
    """An empty plan takes no memory."""
    assert plan_arena([]) == ([], 0)
    assert largest_live_set([]) == 0


def test_a_chain_takes_two_buffers() -> None:
    """Of a thousand tensors in a row, two live at a time."""
    chain = [Request(1024, step, step + 1) for step in range(1000)]
    assert plan_arena(chain)[1] == 2048 == largest_live_set(chain)


def test_small_tensors_beside_a_large_one() -> None:
    """The large one does not push the small ones apart."""
    made = [Request(64, step, step + 1) for step in range(10)] + [Request(4096, 3, 6)]
    assert plan_arena(made)[1] == 4096 + 128 == largest_live_set(made)


def test_many_requests_take_little_time() -> None:
    """Ten thousand requests, some of which live long, in seconds."""
    many = [
        Request(64 * (1 + number % 7), number, number + (2000 if number % 50 == 0 else 3))
        for number in range(10_000)
    ]
    start = time.process_time()
    _, total = plan_arena(many)
    assert time.process_time() - start < 20
    assert total <= 1.2 * largest_live_set(many)
