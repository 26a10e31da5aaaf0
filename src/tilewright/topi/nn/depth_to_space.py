"""Channels moved into blocks of the image."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Each pixel as a block of ``block_size`` squared; in its channels the block comes first (DCR) or last (CDR, or
    CRD as ONNX spells it)."""
    if layout not in ("NCHW", "NHWC"):
        raise OpAttributeInvalid(f"depth_to_space supports the layouts NCHW and NHWC, not {layout!r}")
    if mode not in ("DCR", "CDR", "CRD"):
        raise OpAttributeInvalid(f"depth_to_space supports the modes DCR and CDR, not {mode!r}")
    extent = dict(zip(layout, data.shape, strict=True))
    area = block_size * block_size
    (given,) = get_const_tuple([extent["C"]])
    if isinstance(given, int) and given % area:
        raise InvalidShapeError(f"depth_to_space: {given} channels are not a multiple of {area}")
    channels = simplify(extent["C"] // area)
    shape = {
        "N": extent["N"],
        "C": channels,
        "H": simplify(extent["H"] * block_size),
        "W": simplify(extent["W"] * block_size),
    }

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        block = (at["H"] % block_size) * block_size + at["W"] % block_size
        channel = block * channels + at["C"] if mode == "DCR" else at["C"] * area + block
        source = {"N": at["N"], "C": channel, "H": at["H"] // block_size, "W": at["W"] // block_size}
        return data(*[source[letter] for letter in layout])

    made: Tensor = te.compute(
        [shape[letter] for letter in layout], element, name="depth_to_space", tag=tag.INJECTIVE
    )
    return made
