"""The layouts in which a tuned convolution with its channels in blocks reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.support.errors import OpAttributeInvalid

Shaped = tuple[tuple[int, ...], str]
"""A shape and its layout."""
Layouts = tuple[tuple[Shaped, ...], tuple[Shaped, ...]]
"""Those of the inputs and of the outputs."""


def blocks_of(cfg: Any) -> tuple[int, int] | None:
    """The blocks of input and of output channels that a configuration has; None where it has none."""
    if cfg is None or any(name not in cfg for name in ("tile_ic", "tile_oc")):
        return None
    inner, outer = (_extent(cfg[name]) for name in ("tile_ic", "tile_oc"))
    return inner, outer


def _extent(entity: Any) -> int:
    """The innermost extent of a split, or the chosen option."""
    return int(entity.size[-1]) if hasattr(entity, "size") else int(entity.val)


def output_channels(workload: Sequence[Any]) -> int:
    """The channels of the result: a depthwise kernel is (channels, outputs per channel, height, width)."""
    name, _, kernel, *_ = workload
    first, second, *_ = kernel[1]
    return int(first * second if "depthwise" in name else first)


def blocked_layouts(workload: Sequence[Any], blocks: tuple[int, int]) -> Layouts:
    """The layouts of a workload, (name, data, kernel, strides, padding, dilation, ...), with these blocks."""
    _, data, kernel, strides, padding, dilation, *_ = workload
    batch, channels, height, width = data[1]
    taps, outputs = kernel[1][2:], output_channels(workload)
    inner, outer = blocks
    pads = list(padding) if len(padding) == 4 else [padding[0], padding[1]] * 2
    extents = [
        (size + pads[axis] + pads[axis + 2] - (tap - 1) * dilation[axis] - 1) // strides[axis] + 1
        for axis, (size, tap) in enumerate(zip((height, width), taps, strict=True))
    ]
    before = ((batch, channels // inner, height, width, inner), f"NCHW{inner}c")
    after = ((batch, outputs // outer, extents[0], extents[1], outer), f"NCHW{outer}c")
    return (before,), (after,)


def layouts_of_configuration(workload: Sequence[Any], cfg: Any) -> Layouts:
    """The layouts of a workload with the blocks of a configuration; an error where it has none."""
    blocks = blocks_of(cfg)
    if blocks is None:
        raise OpAttributeInvalid(
            f"the layouts of {workload[0]}: the configuration has no blocks of channels (tile_ic, tile_oc)"
        )
    return blocked_layouts(workload, blocks)
