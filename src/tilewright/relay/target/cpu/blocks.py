"""The costs of convolutions by channel block, for choosing the layouts of a whole program.

Once the blocks of a program have been chosen, ``chosen_blocks`` is active while AlterOpLayout rewrites a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Blocks = tuple[int, int]
"""The channels per block of the input and of the output."""


@dataclass(frozen=True)
class BlockedConvolution:
    """The blocks that a convolution by itself prefers, and its cost with others, in cycles summed over the cores;
    infinite for unsupported blocks."""

    preferred: Blocks
    cycles: Callable[[int, int], float]


_CHOSEN: ContextVar[Blocks | None] = ContextVar("chosen_blocks", default=None)


@contextmanager
def chosen_blocks(blocks: Blocks | None) -> Iterator[None]:
    """Use these blocks for the convolution that is rewritten inside."""
    token = _CHOSEN.set(blocks)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def blocks_in_force() -> Blocks | None:
    """The blocks that were chosen for the call that is being rewritten; None if it may choose itself."""
    return _CHOSEN.get()
