"""Blocks of space moved into the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, prod, simplify


def space_to_batch_nd(
    data: Tensor,
    block_shape: Sequence[Any],
    pad_before: Sequence[Any],
    pad_after: Sequence[Any],
    pad_value: Any = 0.0,
) -> Tensor:
    """Pad the axes after the batch, and move the position of an element in its block in front of the batch."""
    blocks = get_const_tuple(block_shape)
    count = len(blocks)
    if not len(pad_before) == len(pad_after) == count < len(data.shape):
        raise InvalidShapeError(
            "space_to_batch_nd: block_shape, pad_before and pad_after need one number an axis"
        )
    axes = list(range(1, count + 1))
    padded = pad_spatial(
        data, axes, get_const_tuple(pad_before), get_const_tuple(pad_after), pad_value, name="PadInput"
    )
    for size, block in zip(get_const_tuple(padded.shape[1 : count + 1]), blocks, strict=True):
        if isinstance(size, int) and size % block:
            raise InvalidShapeError(
                f"space_to_batch_nd: a padded size of {size} is not a multiple of {block}"
            )
    batch = data.shape[0]
    shape = [
        simplify(batch * prod(blocks)),
        *[simplify(padded.shape[axis] // block) for axis, block in zip(axes, blocks, strict=True)],
        *padded.shape[count + 1 :],
    ]

    def element(*indices: Any) -> Any:
        place = indices[0] // batch
        source = [*indices]
        source[0] = indices[0] % batch
        for axis, block in zip(reversed(axes), reversed(blocks), strict=True):
            source[axis] = indices[axis] * block + place % block
            place = place // block
        return padded(*source)

    made: Tensor = te.compute(shape, element, name="space_to_batch_nd", tag=tag.INJECTIVE)
    return made
