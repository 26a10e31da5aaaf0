"""Winograd convolution with blocked channels; the weight is transformed and packed beforehand.

Tiles of ``m x m`` outputs read ``n x n`` inputs (n = m + 2 for a kernel of three taps). Inputs are transformed along
one axis after the other, multiplied with the weight as one matrix product for each of the ``n x n`` positions, and
transformed back. A row of a transformation is written out as the sum that it is, so that nothing is multiplied by zero
and rows of opposite points share their halves.

8-bit integers are transformed to 16 bits and multiplied in packed lanes of two. Their transforms are scaled to
integers, so that the sums, modulo 2 to the 32nd, are exact multiples of the results: see ``IntegerTransforms``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright import te, tir
from tilewright.support.dtype import DataType
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.tir.packed_lanes import dot_word, numbers_per_lane, pack_word
from tilewright.topi import tag
from tilewright.topi.nn.utils import pad_amounts, per_axis
from tilewright.topi.nn.winograd_util import integer_winograd_transforms, winograd_matrices
from tilewright.topi.utils import get_const_tuple

Matrix = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def conv2d_winograd_NCHWc(
    data: Tensor, weight: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The convolution of data (N, C/i, H, W, i) with a weight (n, n, O/o, C, o) that was transformed for tiles of n - 2
    outputs; the result is (N, O/o, H, W, o).

    A weight of 8-bit data is (n, n, O/o, C/2, o, 2) in int16, and the result int32.
    """
    for value, what in ((strides, "strides"), (dilation, "dilation")):
        if per_axis(value, 2, what) != (1, 1):
            raise OpAttributeInvalid(f"Winograd filtering needs {what} of 1, not {value}")
    alpha, _, outer, depth, inner, *lane = get_const_tuple(weight.shape)
    batch, blocks, height, width, block = get_const_tuple(data.shape)
    numbers = lane[0] if lane else 1
    if blocks * block != depth * numbers:
        raise OpAttributeInvalid(f"the data have {blocks * block} channels, the weight {depth * numbers}")
    tile = alpha - 2
    dtype, sums = str(weight.dtype) if lane else out_dtype or str(data.dtype), out_dtype or str(data.dtype)
    a, b = _matrices(data, weight, tile, block, sums)
    (top, left), (down, right) = pad_amounts(padding, (3, 3))
    out_height, out_width = height + top + down - 2, width + left + right - 2
    rows, columns = ((extent + tile - 1) // tile for extent in (out_height, out_width))

    def read(eps: Any, nu: Any, c: Any, n: Any, ty: Any, tx: Any, i: Any) -> Any:
        y, x = ty * tile + eps - top, tx * tile + nu - left
        inside = tir.all(y >= 0, y < height, x >= 0, x < width)
        element = data[n, c, y, x, i]
        return tir.if_then_else(inside, element.astype(dtype) if lane else element, tir.const(0, dtype))

    shape = (alpha, alpha, blocks, batch, rows, columns, block)
    gathered = te.compute(shape, read, name="input_tile", tag=tag.INJECTIVE)
    halfway = te.compute(
        shape,
        lambda eps, nu, *rest: _combined(_input_rows(b.T, lambda k: gathered(k, nu, *rest), dtype), eps),
        name="input_rows",
    )
    transformed = te.compute(
        shape,
        lambda eps, nu, *rest: _combined(_input_rows(b.T, lambda k: halfway(eps, k, *rest), dtype), nu),
        name="input_transform",
    )
    channel = te.reduce_axis((0, depth), name="ci")

    def multiplied(eps: Any, nu: Any, o: Any, n: Any, ty: Any, tx: Any, i: Any) -> Any:
        words = block // numbers
        at, word = (eps, nu, channel // words, n, ty, tx), channel % words
        if not lane:
            return transformed(*at, word) * weight(eps, nu, o, channel, i)
        given = pack_word(*[transformed(*at, word * numbers + number) for number in range(numbers)])
        factor = pack_word(*[weight(eps, nu, o, channel, i, number) for number in range(numbers)])
        return dot_word(given, factor, dtype, dtype)

    product = te.compute(
        (alpha, alpha, outer, batch, rows, columns, inner),
        lambda *at: te.sum(multiplied(*at), axis=channel),
        name="product",
    )
    back_rows = te.compute(
        (tile, alpha, outer, batch, rows, columns, inner),
        lambda vh, nu, *rest: _combined(_output_rows(a.T, lambda k: product(k, nu, *rest), sums), vh),
        name="output_rows",
    )
    back = te.compute(
        (tile, tile, outer, batch, rows, columns, inner),
        lambda vh, vw, *rest: _combined(_output_rows(a.T, lambda k: back_rows(vh, k, *rest), sums), vw),
        name="output_transform",
    )

    def element(n: Any, o: Any, h: Any, w: Any, i: Any) -> Any:
        found = back(h % tile, w % tile, o, n, h // tile, w // tile, i)
        if not lane:
            return found
        transforms = integer_winograd_transforms(tile)
        if transforms.inverse != 1:
            found = found * tir.const(transforms.inverse, sums)
        return found >> tir.const(transforms.shift, sums)

    made: Tensor = te.compute(
        (batch, outer, out_height, out_width, inner), element, name=tag.WINOGRAD, tag=tag.WINOGRAD
    )
    return made


def _matrices(data: Tensor, weight: Tensor, tile: int, block: int, sums: str) -> tuple[Matrix, Matrix]:
    """``A`` and ``B`` for numbers of these types."""
    if len(weight.shape) == 5 and DataType(sums).is_float:
        a, b, _ = winograd_matrices(tile, 3)
        return a, b
    types = (str(data.dtype), str(weight.dtype), sums)
    if len(weight.shape) == 5 or types not in (("uint8", "int16", "int32"), ("int8", "int16", "int32")):
        raise OpAttributeInvalid(
            "Winograd filtering of integers is of 8-bit data with weights in lanes of two int16, to int32, not of "
            f"{types[0]} with a weight of {types[1]} and {len(weight.shape)} dimensions to {types[2]}"
        )
    if block % numbers_per_lane(weight.dtype):
        raise OpAttributeInvalid(f"blocks of {block} channels do not have whole lanes of two")
    transforms = integer_winograd_transforms(tile)
    return transforms.a, transforms.b


def _combined(rows: Sequence[Any], row: Any) -> Any:
    """The value of a row whose number is an axis: a choice, which unrolled loops fold away."""
    chosen = rows[-1]
    for number in reversed(range(len(rows) - 1)):
        chosen = tir.Select(row == number, rows[number], chosen)
    return chosen


def _input_rows(matrix: Matrix, element: Callable[[int], Any], dtype: str) -> list[Any]:
    """``matrix @ elements``. Of two points of opposite sign, one row is the sum and the other the difference of the
    same two parts: the elements of even and of odd number."""
    made = []
    for coefficients in matrix:
        even, odd = (
            _sum(
                [(coefficients[number], element(number)) for number in range(first, len(coefficients), 2)],
                dtype,
            )
            for first in (0, 1)
        )
        made.append(_added(even, odd))
    return made


def _output_rows(matrix: Matrix, element: Callable[[int], Any], dtype: str) -> list[Any]:
    """``matrix @ elements``. The elements of two points of opposite sign, neighbours in the matrix, are added or
    subtracted first: rows of even number share the sums, rows of odd number the differences."""
    count = matrix.shape[1]
    made = []
    for power, coefficients in enumerate(matrix):
        terms = [(coefficients[0], element(0)), (coefficients[-1], element(count - 1))]
        for number in range(1, count - 1, 2):
            one, other = element(number), element(number + 1)
            terms.insert(-1, (coefficients[number], one - other if power % 2 else one + other))
        made.append(_sum(terms, dtype)[0])
    return made


def _sum(terms: Sequence[tuple[Any, Any]], dtype: str) -> tuple[Any, bool]:
    """The weighted sum, its last coefficient made positive, and whether it has to be negated for that. None if it has
    no terms."""
    present = [(coefficient, value) for coefficient, value in reversed(terms) if coefficient != 0]
    if not present:
        return None, False
    negated = bool(present[0][0] < 0)
    total: Any = None
    for coefficient, value in present:
        positive = (coefficient > 0) != negated
        size = abs(float(coefficient)) if DataType(dtype).is_float else abs(int(coefficient))
        scaled = value if size == 1 else value * tir.const(size, dtype)
        if total is None:
            total = scaled
        else:
            total = total + scaled if positive else total - scaled
    return total, negated


def _added(one: tuple[Any, bool], other: tuple[Any, bool]) -> Any:
    """The sum of two signed parts, of which one may be missing."""
    (first, negated), (second, other_negated) = one, other
    if first is None or second is None:
        value, negated = (second, other_negated) if first is None else (first, negated)
        return -value if negated else value
    if negated:
        return second - first if not other_negated else -(first + second)
    return first - second if other_negated else first + second
