"""One block of memory for many tensors: two that are never needed at the same time share their bytes."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes: of every place in an arena, and of the arena as a whole."""


@dataclass(frozen=True)
class Request:
    """Memory that is needed from one step to another, both included."""

    size: int
    first: int
    last: int


def rounded(size: int) -> int:
    """The size up to the next aligned place."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def largest_live_set(requests: Sequence[Request]) -> int:
    """The most bytes that are needed at one step: no plan can do with less."""
    change: dict[int, int] = defaultdict(int)
    for request in requests:
        change[request.first] += rounded(request.size)
        change[request.last + 1] -= rounded(request.size)
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


def plan_arena(requests: Sequence[Request]) -> tuple[list[int], int]:
    """An offset for each request, none overlapping another in both space and time, and the size of the whole.

    Two plans are made, each request in the lowest gap that it fits, and the smaller one is taken: the largest requests
    first, and in the order of time.
    """
    by_size = _place_in_order(
        requests, sorted(range(len(requests)), key=lambda one: (-requests[one].size, requests[one].first))
    )
    if by_size[1] <= largest_live_set(requests):
        return by_size
    by_time = _place_in_order(requests, sorted(range(len(requests)), key=lambda one: requests[one].first))
    return min(by_size, by_time, key=lambda plan: plan[1])


def _place_in_order(requests: Sequence[Request], order: Sequence[int]) -> tuple[list[int], int]:
    """Each request in its turn, at the lowest offset where it meets no other."""
    offsets = [0] * len(requests)
    # The requests already placed that are alive at a step, as (offset, end), sorted. Steps are grouped, so that a
    # request that lives long does not have to be entered at each of them.
    alive = _Timeline(max((request.last for request in requests), default=0) + 1)
    total = 0
    for number in order:
        request = requests[number]
        size = rounded(request.size)
        at = 0
        for offset, end in alive.meeting(request.first, request.last):
            if at + size <= offset:
                break
            at = max(at, end)
        offsets[number] = at
        alive.add(request.first, request.last, at, at + size)
        total = max(total, at + size)
    return offsets, total


class _Timeline:
    """Places in memory by the time in which they are taken: a segment tree over steps."""

    def __init__(self, steps: int) -> None:
        self.width = 1
        while self.width < steps:
            self.width *= 2
        self.inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.below: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def _cover(self, first: int, last: int) -> list[int]:
        """The fewest tree nodes whose steps are exactly these."""
        nodes = []
        low, high = first + self.width, last + self.width + 1
        while low < high:
            if low & 1:
                nodes.append(low)
                low += 1
            if high & 1:
                high -= 1
                nodes.append(high)
            low //= 2
            high //= 2
        return nodes

    def add(self, first: int, last: int, offset: int, end: int) -> None:
        """Take a place for some steps."""
        for node in self._cover(first, last):
            insort(self.inside[node], (offset, end))
            above = node // 2
            while above:
                insort(self.below[above], (offset, end))
                above //= 2

    def meeting(self, first: int, last: int) -> list[tuple[int, int]]:
        """The places that are taken at one of the steps, in order."""
        found: set[tuple[int, int]] = set()
        for node in self._cover(first, last):
            found.update(self.inside.get(node, ()))
            found.update(self.below.get(node, ()))
            above = node // 2
            while above:
                found.update(self.inside.get(above, ()))
                above //= 2
        return sorted(found)
