"""Small grey pictures in a terminal: two rows of pixels per row of characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

BLOCKS = " ▀▄█"
PLAIN = " '.:"
"""For terminals that have no block characters."""


def picture(pixels: np.ndarray[Any, Any], characters: str = BLOCKS, threshold: float = 0.4) -> list[str]:
    """The lines of a picture of values from 0 to 1; those above the threshold are drawn."""
    drawn = np.asarray(pixels) > threshold
    if len(drawn) % 2:
        drawn = np.vstack([drawn, np.zeros((1, drawn.shape[1]), bool)])
    codes = drawn[0::2].astype(int) + 2 * drawn[1::2].astype(int)
    return ["".join(characters[code] for code in row) for row in codes]


def side_by_side(blocks: Sequence[Sequence[str]], gap: int = 4) -> str:
    """Blocks of lines beside each other, each as wide as its widest line."""
    widths = [max(len(line) for line in block) for block in blocks]
    height = max(len(block) for block in blocks)
    lines = []
    for row in range(height):
        cells = [
            (block[row] if row < len(block) else "").ljust(width)
            for block, width in zip(blocks, widths, strict=True)
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return "\n".join(lines)


def terminal_characters() -> str:
    """The characters that standard output can show."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS
