"""Odd functions with limit 1, by piecewise polynomials whose coefficients are looked up in registers.

One permute instruction looks up as many coefficients as a register has lanes, in a table that is itself a register. So
a low-degree polynomial is enough, with no division and no exponential. The coefficients are computed here, from the
function in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.codegen.llvm.math.block import Block, Value

_MAGIC = 1.5 * 2**23


@dataclass(frozen=True)
class Pieces:
    """``count`` intervals with centres at the multiples of ``step``, on each a polynomial of the distance.

    Products of ``step`` with whole numbers up to ``count`` must be exact. From ``limit`` on, which the last interval
    holds, the function is 1; the tests hold the last polynomial to that.
    """

    function: Callable[[float], float]
    count: int
    step: float
    degree: int
    limit: float

    def tables(self) -> list[list[float]]:
        """For each power, the highest first, the coefficient of every piece."""
        pieces = [self._first(), *(self._piece(place * self.step) for place in range(1, self.count))]
        return [[piece[power] for piece in pieces] for power in range(self.degree, -1, -1)]

    def _piece(self, centre: float) -> list[float]:
        half = self.step / 2
        return _interpolation(lambda distance: self.function(centre + distance), -half, half, self.degree)

    def _first(self) -> list[float]:
        """Around zero: x times a polynomial of the square, so that the relative error is small there too."""
        even = _interpolation(
            lambda square: self.function(math.sqrt(square)) / math.sqrt(square),
            0.0,
            self.step**2 / 4,
            self.degree // 2,
        )
        return [0.0 if power % 2 == 0 else even[power // 2] for power in range(self.degree + 1)]


def _interpolation(function: Callable[[float], float], low: float, high: float, degree: int) -> list[float]:
    """The polynomial, lowest power first, that has a function's values at the Chebyshev points of a range."""
    angles = [math.pi * (place + 0.5) / (degree + 1) for place in range(degree + 1)]
    points = [(low + high) / 2 + (high - low) / 2 * math.cos(angle) for angle in angles]
    differences = [function(point) for point in points]
    for order in range(1, degree + 1):
        for place in range(degree, order - 1, -1):
            gap = points[place] - points[place - order]
            differences[place] = (differences[place] - differences[place - 1]) / gap
    result = [differences[degree]]
    for place in range(degree - 1, -1, -1):
        shifted = [0.0, *result]
        for power, coefficient in enumerate(result):
            shifted[power] -= points[place] * coefficient
        shifted[0] += differences[place]
        result = shifted
    return result


def odd_by_pieces(block: Block, x: Value, pieces: Pieces) -> Value:
    """The function of float32 numbers; the block must be able to look up ``pieces.count`` numbers."""
    size = x.absolute()
    size = block.select(size > pieces.limit, pieces.limit, size)
    shifted = block.multiply_add(size, 1 / pieces.step, _MAGIC)
    distance = block.multiply_add(shifted - _MAGIC, -pieces.step, size)
    index = shifted.bits()
    total, *rest = (block.lookup(table, index) for table in pieces.tables())
    for coefficient in rest:
        total = block.multiply_add(total, distance, coefficient)
    return total.copysign(x)
