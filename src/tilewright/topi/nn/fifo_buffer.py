"""A window over a stream."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.utils import InvalidShapeError


def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """``buffer`` moved along ``axis`` by the length of ``data``, which fills the end."""
    rank = len(buffer.shape)
    if len(data.shape) != rank or not -rank <= axis < rank:
        raise InvalidShapeError(
            f"fifo_buffer: data and buffer need as many dimensions, of which axis {axis} is one; "
            f"they have {len(data.shape)} and {rank}"
        )
    along = axis % rank
    for position in range(rank):
        if position != along:
            require_equal(
                data.shape[position], buffer.shape[position], f"dimension {position} of data and buffer"
            )
    length = data.shape[along]
    kept = buffer.shape[along] - length

    def element(*indices: Any) -> Any:
        index = indices[along]

        def at(moved: Any) -> list[Any]:
            return [*indices[:along], moved, *indices[along + 1 :]]

        return tir.if_then_else(index < kept, buffer(*at(index + length)), data(*at(index - kept)))

    made: Tensor = te.compute(buffer.shape, element, name="new_buffer", tag=tag.INJECTIVE)
    return made
