"""Channels of several groups dealt out in turn."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi.nn.utils import channel_block
from tilewright.topi.utils import get_const_tuple


def channel_shuffle(data: Tensor, groups: int, layout: str = "NCHW") -> Tensor:
    """The first channel of each group, then the second of each, and so on: channel ``c`` of the result is channel
    ``c // groups`` of group ``c % groups``. The layout is NCHW, or NCHW with the channels in blocks (``NCHW16c``)."""
    block = channel_block(layout)
    (outer,) = get_const_tuple([data.shape[1]])
    channels = outer * max(block, 1)
    if channels % groups:
        raise OpAttributeInvalid(f"{channels} channels cannot be divided into {groups} groups")
    size = channels // groups

    def plain(n: Any, c: Any, h: Any, w: Any) -> Any:
        return data(n, tir.floormod(c, groups) * size + tir.floordiv(c, groups), h, w)

    def blocked(n: Any, c: Any, h: Any, w: Any, part: Any) -> Any:
        if block % groups == 0 and size % block == 0:
            # A block of the result takes the same part of one block of each group.
            source = tir.floormod(part, groups) * (size // block) + tir.floordiv(c, groups)
            within = tir.floormod(c, groups) * (block // groups) + tir.floordiv(part, groups)
            return data(n, source, h, w, within)
        channel = c * block + part
        channel = tir.floormod(channel, groups) * size + tir.floordiv(channel, groups)
        return data(n, tir.floordiv(channel, block), h, w, tir.floormod(channel, block))

    made: Tensor = te.compute(
        data.shape, plain if block < 0 else blocked, name="channel_shuffle", tag="injective"
    )
    return made
