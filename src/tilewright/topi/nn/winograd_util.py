"""The transformation matrices of Winograd convolution, for any tile and kernel size.

A tile of ``m`` outputs of a filter of ``r`` taps reads ``n = m + r - 1`` inputs and needs ``n`` products instead of
``m * r``: ``Y = A^T ((G g) * (B^T d))``. The matrices come from polynomial products at ``n - 1`` points and infinity
(Toom and Cook), transposed; they are computed in fractions, so they are exact until the last rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import gcd, lcm
from typing import Final

import numpy as np
import numpy.typing as npt

from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi.utils import const_matrix

_POINTS = ["0", "1", "-1", "1/2", "-1/2", "2", "-2", "1/4", "-4", "-1/4", "4", "3/4", "-4/3", "-3/4", "4/3"]
"""Small numbers and their reciprocals, with both signs: the error grows with the spread of the points' powers."""

Matrix = list[list[Fraction]]


def _powers(points: list[Fraction], count: int) -> Matrix:
    """The values of ``1, x, x**2, ...`` at the points, a row each; at infinity only the highest power counts."""
    rows = [[point**power for power in range(count)] for point in points]
    return [*rows, [Fraction(int(power == count - 1)) for power in range(count)]]


def _inverse(matrix: Matrix) -> Matrix:
    """The inverse by elimination."""
    size = len(matrix)
    work = [
        [*row, *[Fraction(int(column == index)) for column in range(size)]]
        for index, row in enumerate(matrix)
    ]
    for index in range(size):
        pivot = next(row for row in range(index, size) if work[row][index] != 0)
        work[index], work[pivot] = work[pivot], work[index]
        work[index] = [value / work[index][index] for value in work[index]]
        for row in range(size):
            factor = work[row][index]
            if row != index and factor != 0:
                work[row] = [
                    value - factor * other for value, other in zip(work[row], work[index], strict=True)
                ]
    return [row[size:] for row in work]


@cache
def winograd_matrices(
    tile_size: int, kernel_size: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """``A`` (n, m), ``B`` (n, n) and ``G`` (n, r) in float64, to be read only."""
    count = tile_size + kernel_size - 1
    if tile_size < 1 or kernel_size < 1 or count - 1 > len(_POINTS):
        raise OpAttributeInvalid(
            f"Winograd filtering with tiles of {tile_size} and kernels of {kernel_size}: both must be positive, "
            f"and together at most {len(_POINTS) + 2}"
        )
    exact = _exact_matrices([Fraction(point) for point in _POINTS[: count - 1]], tile_size, kernel_size)
    made = [np.array([[float(value) for value in row] for row in matrix]) for matrix in exact]
    for matrix in made:
        matrix.flags.writeable = False
    return made[0], made[1], made[2]


def _exact_matrices(
    points: list[Fraction], tile_size: int, kernel_size: int
) -> tuple[Matrix, Matrix, Matrix]:
    a = _powers(points, tile_size)
    g = _powers(points, kernel_size)
    b = _inverse(_powers(points, len(points) + 1))
    # The denominators of the inverse move to G, which is applied once to the weights: B is made of small numbers.
    for index, point in enumerate(points):
        scale = Fraction(1)
        for other in points:
            scale *= point - other if other != point else 1
        g[index] = [value / scale for value in g[index]]
        for row in b:
            row[index] *= scale
    return a, b, g


def winograd_transform_matrices(
    tile_size: int, kernel_size: int, out_dtype: str
) -> tuple[Tensor, Tensor, Tensor]:
    """``A``, ``B`` and ``G`` as tensors of constants."""
    a, b, g = (matrix.astype(out_dtype) for matrix in winograd_matrices(tile_size, kernel_size))
    return const_matrix(a, "A"), const_matrix(b, "B"), const_matrix(g, "G")


# Integers

_INTEGER_POINTS: Final = (0, 1, -1, 2, -2)
INTEGER_TILES: Final = (2, 4)
"""Tiles of outputs of a kernel of three taps with which transformed 8-bit integers are within 16 bits."""
_LARGEST: Final = {"data": 255, "weight": 128}
_LARGEST_INT16: Final = (1 << 15) - 1


@dataclass(frozen=True)
class IntegerTransforms:
    """Matrices of integers, with which ``scale * Y = A^T ((G g) * (B^T d))`` along each axis.

    8-bit integers are within 16 bits after both transforms. Sums and the transform back may wrap around at 32 bits: a
    result is exact as long as ``scale ** 2`` times it, without the odd factors of the scale, is within 32 bits.
    """

    a: npt.NDArray[np.int64]
    b: npt.NDArray[np.int64]
    g: npt.NDArray[np.int64]
    scale: int

    @property
    def shift(self) -> int:
        """The power of two in the scale of both axes."""
        return ((self.scale & -self.scale) ** 2).bit_length() - 1

    @property
    def inverse(self) -> int:
        """The inverse of the odd factors of the scale of both axes, modulo 2 to the 32nd, as a signed number."""
        found = pow(self.scale**2 >> self.shift, -1, 1 << 32)
        return found - (1 << 32) if found >= 1 << 31 else found

    @property
    def limit(self) -> int:
        """Results of smaller absolute value are exact."""
        return 1 << (31 - self.shift)


@cache
def integer_winograd_transforms(tile_size: int) -> IntegerTransforms:
    """The transforms of 8-bit integers for kernels of three taps.

    The denominators of ``G`` become a common scale. What a row of ``G`` would be too large with for 16 bits is
    multiplied after the products instead, by ``A``.
    """
    if tile_size not in INTEGER_TILES:
        raise OpAttributeInvalid(
            f"Winograd filtering of integers has tiles of 2 or 4 outputs, not {tile_size}"
        )
    points = [Fraction(point) for point in _INTEGER_POINTS[: tile_size + 1]]
    a, b, g = _exact_matrices(points, tile_size, 3)
    scale = lcm(*[value.denominator for row in g for value in row])
    for row, back in zip(g, a, strict=True):
        scaled = [int(value * scale) for value in row]
        total, common = sum(map(abs, scaled)), gcd(*scaled)
        later = next(
            size
            for size in range(1, common + 1)
            if common % size == 0 and (total // size) ** 2 * _LARGEST["weight"] <= _LARGEST_INT16
        )
        row[:] = [Fraction(value // later) for value in scaled]
        back[:] = [value * later for value in back]
    made = [np.array([[int(value) for value in row] for row in matrix], np.int64) for matrix in (a, b, g)]
    assert int(np.abs(made[1]).sum(axis=0).max()) ** 2 * _LARGEST["data"] <= _LARGEST_INT16
    for matrix in made:
        matrix.flags.writeable = False
    return IntegerTransforms(made[0], made[1], made[2], scale)
