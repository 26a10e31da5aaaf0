"""Parts of the batch moved into blocks of space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, prod, simplify


def batch_to_space_nd(
    data: Tensor, block_shape: Sequence[Any], crop_begin_list: Sequence[Any], crop_end_list: Sequence[Any]
) -> Tensor:
    """The inverse of ``space_to_batch_nd``: the batch's leading part becomes the position in a block, then crop."""
    blocks = get_const_tuple(block_shape)
    begins, ends = get_const_tuple(crop_begin_list), get_const_tuple(crop_end_list)
    count = len(blocks)
    if not len(begins) == len(ends) == count < len(data.shape):
        raise InvalidShapeError("batch_to_space_nd: block_shape and both crops need one number an axis")
    (given,) = get_const_tuple([data.shape[0]])
    total = prod(blocks)
    if isinstance(given, int) and isinstance(total, int) and given % total:
        raise InvalidShapeError(f"batch_to_space_nd: a batch of {given} is not a multiple of {total}")
    batch = simplify(data.shape[0] // total)
    shape = [
        batch,
        *[
            simplify(extent * block - begin - end)
            for extent, block, begin, end in zip(data.shape[1 : count + 1], blocks, begins, ends, strict=True)
        ],
        *data.shape[count + 1 :],
    ]

    def element(*indices: Any) -> Any:
        place: Any = 0
        source = [*indices]
        for axis, (block, begin) in enumerate(zip(blocks, begins, strict=True), start=1):
            position = indices[axis] + begin
            source[axis] = position // block
            place = place * block + position % block
        source[0] = place * batch + indices[0]
        return data(*source)

    made: Tensor = te.compute(shape, element, name="batch_to_space_nd", tag=tag.INJECTIVE)
    return made
