"""What convolutions cost by the blocks that their channels lie in: what the choice of layouts for a whole program asks.

Where a program's blocks have been chosen, ``chosen_blocks`` is in force while AlterOpLayout asks for the call in
another layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Blocks = tuple[int, int]
"""Channels of the input and of the output that lie together."""


@dataclass(frozen=True)
class BlockedConvolution:
    """The blocks that suit a convolution by itself, and the cycles of all cores that it takes with others: infinite for
    blocks in which it cannot run."""

    preferred: Blocks
    cycles: Callable[[int, int], float]


_CHOSEN: ContextVar[Blocks | None] = ContextVar("chosen_blocks", default=None)


@contextmanager
def chosen_blocks(blocks: Blocks | None) -> Iterator[None]:
    """These blocks for the convolution that is replaced inside."""
    token = _CHOSEN.set(blocks)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def blocks_in_force() -> Blocks | None:
    """The blocks that were chosen for the call that is being replaced; None where it has the choice."""
    return _CHOSEN.get()
