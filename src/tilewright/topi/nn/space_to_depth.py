"""Blocks of the image moved into channels."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Each block of ``block_size`` by ``block_size`` pixels as one pixel; its rows, then columns, lead the channels."""
    if layout not in ("NCHW", "NHWC"):
        raise OpAttributeInvalid(f"space_to_depth supports the layouts NCHW and NHWC, not {layout!r}")
    extent = dict(zip(layout, data.shape, strict=True))
    for size in get_const_tuple([extent["H"], extent["W"]]):
        if isinstance(size, int) and size % block_size:
            raise InvalidShapeError(
                f"space_to_depth: an image of size {size} has no whole number of blocks of {block_size}"
            )
    channels = extent["C"]
    shape = {
        "N": extent["N"],
        "C": simplify(channels * block_size * block_size),
        "H": simplify(extent["H"] // block_size),
        "W": simplify(extent["W"] // block_size),
    }

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        block = at["C"] // channels
        source = {
            "N": at["N"],
            "C": at["C"] % channels,
            "H": at["H"] * block_size + block // block_size,
            "W": at["W"] * block_size + block % block_size,
        }
        return data(*[source[letter] for letter in layout])

    made: Tensor = te.compute(
        [shape[letter] for letter in layout], element, name="space_to_depth", tag=tag.INJECTIVE
    )
    return made
