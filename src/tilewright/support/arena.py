"""One block of memory for many tensors: tensors whose lifetimes do not overlap share bytes."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes: of every place in an arena, and of the arena as a whole."""


@dataclass(frozen=True)
class Request:
    """Memory that is needed from one step to another, both included. ``offset`` is its place in the block that it is a
    part of."""

    size: int
    first: int
    last: int
    offset: int = 0


def rounded(size: int) -> int:
    """The size up to the next aligned place."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def largest_live_blocks(blocks: Sequence[Sequence[Request]]) -> int:
    """The most bytes that are needed at one step: no plan can do with less. What fills a cache line by itself counts as
    a whole one, unless a part of another block may leave room in its line."""
    parts_share_lines = any(len(block) > 1 for block in blocks)
    change: dict[int, int] = defaultdict(int)
    for block in blocks:
        for part in block:
            size = part.size if parts_share_lines else rounded(part.size)
            change[part.first] += size
            change[part.last + 1] -= size
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


def plan_blocks(blocks: Sequence[Sequence[Request]]) -> tuple[list[int], int]:
    """An offset for each block, no part overlapping one of another block in both space and time, and the size of the
    whole. The parts of a block keep their places in it, and what is free between them, while it is free, can be used by
    others.

    Two plans are made, each block at the lowest place that it fits, and the smaller one is taken: the largest blocks
    first, and in the order of time.
    """
    sizes = [max((part.offset + part.size for part in block), default=0) for block in blocks]
    firsts = [min((part.first for part in block), default=0) for block in blocks]
    by_size = _place_in_order(blocks, sorted(range(len(blocks)), key=lambda one: (-sizes[one], firsts[one])))
    if by_size[1] <= largest_live_blocks(blocks):
        return by_size
    by_time = _place_in_order(blocks, sorted(range(len(blocks)), key=lambda one: firsts[one]))
    return min(by_size, by_time, key=lambda plan: plan[1])


def _place_in_order(blocks: Sequence[Sequence[Request]], order: Sequence[int]) -> tuple[list[int], int]:
    """Each block in its turn, at the lowest offset where it meets no other."""
    offsets = [0] * len(blocks)
    # The parts already placed that are alive at a step, as (offset, end), sorted. Steps are grouped, so that a
    # part that lives long does not have to be entered at each of them.
    alive = _Timeline(max((part.last for block in blocks for part in block), default=0) + 1)
    total = 0
    for number in order:
        block = blocks[number]
        at = _lowest_place(block, [alive.meeting(part.first, part.last) for part in block])
        offsets[number] = at
        for part in block:
            start, end = at + part.offset, rounded(at + part.offset + part.size)
            alive.add(part.first, part.last, start, end)
            total = max(total, end)
    return offsets, total


def _lowest_place(block: Sequence[Request], taken: Sequence[Sequence[tuple[int, int]]]) -> int:
    """The lowest offset at which no part meets what is taken in its time."""
    at, clear = 0, 0
    while clear < len(block):
        for part, places in zip(block, taken, strict=True):
            before = at
            for offset, end in places:
                if at + part.offset + part.size <= offset:
                    break
                # Where it stands now, the part begins before this place ends.
                if at + part.offset < end:
                    at = rounded(end - part.offset)
            clear = clear + 1 if at == before else 1
            if clear >= len(block):
                break
    return at


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
