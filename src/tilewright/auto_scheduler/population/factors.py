"""How a length can be divided into the lengths of a tiling."""

from __future__ import annotations

import random
from functools import lru_cache

_USEFUL = (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Tile sizes for lengths that have too few divisors: the last tile is then partly empty."""
_FEW = 3


@lru_cache(maxsize=4096)
def divisors(length: int) -> tuple[int, ...]:
    """All divisors, in order."""
    small = [one for one in range(1, int(length**0.5) + 1) if length % one == 0]
    return tuple(sorted({*small, *(length // one for one in small)}))


@lru_cache(maxsize=4096)
def tile_sizes(length: int, most: int) -> tuple[int, ...]:
    """The sizes of an innermost tile of at most so many. A length with few divisors in that range, as a prime has, also
    gets sizes that leave a rest."""
    exact = [one for one in divisors(length) if one <= most]
    if len(exact) > _FEW or length <= most:
        return tuple(exact)
    return tuple(sorted({*exact, *(one for one in _USEFUL if one <= most and one < length)}))


def random_lengths(length: int, count: int, most: int, generator: random.Random) -> tuple[int, ...]:
    """Lengths for the ``count`` inner loops of a split, outermost first; the innermost is at most ``most``."""
    made: list[int] = []
    rest = length
    for position in range(count):
        sizes = tile_sizes(rest, most) if position == 0 else divisors(rest)
        size = generator.choice(sizes)
        made.append(size)
        rest = -(-rest // size)
    # Drawn from the inside out, the inner loops would be the longest; all but the innermost are mixed again.
    outer = made[1:]
    generator.shuffle(outer)
    return (*outer, made[0])
