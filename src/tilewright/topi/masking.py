"""Tensors with a part replaced by position: behind a length, above or below a diagonal, on diagonals."""

from __future__ import annotations

from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr, Select
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.op import all as all_of
from tilewright.tir.op import if_then_else
from tilewright.topi.arguments import as_ints, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.tag import ELEMWISE, INJECTIVE


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: ExprLike = 0, axis: int = 0) -> Tensor:
    """Everything behind ``valid_length[batch]`` along ``axis`` replaced by a value; axis is 0 or 1, the other is the
    batch."""
    rank = len(data.shape)
    if rank < 2:
        raise ExpressionError(
            f"sequence_mask takes data of two dimensions or more, not {shape_text(data.shape)}"
        )
    position = real_axis("sequence_mask", axis, rank)
    if position > 1:
        raise ExpressionError(f"sequence_mask: the axis is 0 or 1, not {axis}")
    if len(valid_length.shape) != 1 or known_different(valid_length.shape[0], data.shape[1 - position]):
        raise ExpressionError(
            f"sequence_mask: {shape_text(valid_length.shape)} is not one length for each of the "
            f"{data.shape[1 - position]} sequences"
        )
    mask = operators.cast(data.dtype, mask_value)
    return computed(
        data.shape,
        lambda *i: Select(i[position] >= valid_length(i[1 - position]), mask, data(*i)),
        name="T_sequence_mask",
        tag=INJECTIVE,
    )


def trilu(data: Tensor, k: Tensor | ExprLike, upper: bool) -> Tensor:
    """The upper (or lower) triangle of the last two axes, zero elsewhere; ``k`` is the diagonal it reaches to."""
    if len(data.shape) < 2:
        raise ExpressionError(f"trilu takes matrices, not {shape_text(data.shape)}")
    diagonal = k(*[0] * len(k.shape)) if isinstance(k, Tensor) else operators.as_expr(k)
    zero = operators.const(0, data.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        above = operators.subtract(i[-1], i[-2])
        kept = operators.greater_equal(above, diagonal) if upper else operators.less_equal(above, diagonal)
        return Select(kept, data(*i), zero)

    return computed(data.shape, element, name="trilu", tag=ELEMWISE)


_ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def matrix_set_diag(
    data: Tensor, diagonal: Tensor, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Diagonals of the last two axes replaced.

    ``k`` is one diagonal or a pair of the lowest and the highest; 0 is the main one, those above are positive. Of
    several, the highest comes first in ``diagonal``, and shorter ones are aligned in their rows as ``align`` says:
    first those above the main diagonal, then those below.
    """
    numbers = as_ints("matrix_set_diag", "a diagonal", k)
    low, high = (numbers[0], numbers[-1]) if len(numbers) in (1, 2) else (1, 0)
    if low > high:
        raise ExpressionError(f"matrix_set_diag: k is a diagonal or an ascending pair of them, not {k}")
    if align not in _ALIGNMENTS:
        raise ExpressionError(f"matrix_set_diag: align is one of {', '.join(_ALIGNMENTS)}, not {align!r}")
    several = low != high
    rank = len(data.shape)
    if rank < 2 or len(diagonal.shape) != (rank if several else rank - 1):
        raise ExpressionError(
            f"matrix_set_diag: {shape_text(diagonal.shape)} holds no diagonals {low} to {high} of "
            f"{shape_text(data.shape)}"
        )
    if several and known_different(diagonal.shape[-2], operators.const(high - low + 1)):
        raise ExpressionError(
            f"matrix_set_diag: {shape_text(diagonal.shape)} does not hold {high - low + 1} diagonals"
        )
    above_left, below_left = (side == "LEFT" for side in align.split("_"))
    rows, columns, longest = data.shape[-2], data.shape[-1], diagonal.shape[-1]

    def element(*i: PrimExpr) -> PrimExpr:
        row, column = i[-2], i[-1]
        number = operators.subtract(column, row)
        along: Any = operators.minimum(row, column)
        if several:
            length = operators.minimum(
                rows + operators.minimum(number, 0), columns - operators.maximum(number, 0)
            )
            left = operators.const(False)
            if above_left:
                left = operators.logical_or(left, number >= 0)
            if below_left:
                left = operators.logical_or(left, number <= 0)
            along = along + Select(left, operators.const(0), longest - length)
        index = [*i[:-2], *([high - number] if several else []), along]
        on_diagonal = all_of(number >= low, number <= high)
        return if_then_else(on_diagonal, operators.cast(data.dtype, diagonal(*index)), data(*i))

    return computed(data.shape, element, name="matrix_set_diag", tag=INJECTIVE)
