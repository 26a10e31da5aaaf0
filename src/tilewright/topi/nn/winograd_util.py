"""The transformation matrices of Winograd convolution, for any tile and kernel size.

A tile of ``m`` outputs of a filter of ``r`` taps reads ``n = m + r - 1`` inputs and needs ``n`` products instead of
``m * r``: ``Y = A^T ((G g) * (B^T d))``. The matrices come from polynomial products at ``n - 1`` points and infinity
(Toom and Cook), transposed; they are computed in fractions, so they are exact until the last rounding.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

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
    points = [Fraction(point) for point in _POINTS[: count - 1]]
    a = _powers(points, tile_size)
    g = _powers(points, kernel_size)
    b = _inverse(_powers(points, count))
    # The denominators of the inverse move to G, which is applied once to the weights: B is made of small numbers.
    for index, point in enumerate(points):
        scale = Fraction(1)
        for other in points:
            scale *= point - other if other != point else 1
        g[index] = [value / scale for value in g[index]]
        for row in b:
            row[index] *= scale
    made = [np.array([[float(value) for value in row] for row in matrix]) for matrix in (a, b, g)]
    for matrix in made:
        matrix.flags.writeable = False
    return made[0], made[1], made[2]


def winograd_transform_matrices(
    tile_size: int, kernel_size: int, out_dtype: str
) -> tuple[Tensor, Tensor, Tensor]:
    """``A``, ``B`` and ``G`` as tensors of constants."""
    a, b, g = (matrix.astype(out_dtype) for matrix in winograd_matrices(tile_size, kernel_size))
    return const_matrix(a, "A"), const_matrix(b, "B"), const_matrix(g, "G")
