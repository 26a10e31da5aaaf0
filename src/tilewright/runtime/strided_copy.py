"""Copying transposed arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_LINE_BYTES: Final = 64
"""A cache line."""
_CACHED_BYTES: Final = 1 << 20
"""Smaller arrays stay in the cache while they are copied, in whatever order."""


def copy_strided(target: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Copy an array of any strides into a compact one of the same shape.

    NumPy goes through the source in the order of the target's memory or the other way round. Where the source is large
    and transposed, one of the two then leaves a cache line after every element and comes back when the line is gone.
    So the target is filled in columns that are as wide as a line.
    """
    width = max(1, _LINE_BYTES // target.itemsize)
    if _is_transposed(source, width) and not np.may_share_memory(target, source):
        for start in range(0, source.shape[-1], width):
            columns = slice(start, start + width)
            np.copyto(target[..., columns], source[..., columns], casting="unsafe")
    else:
        np.copyto(target, source, casting="unsafe")


def _is_transposed(source: npt.NDArray[Any], width: int) -> bool:
    """True for a large array whose last axis is longer than ``width`` and not the one with the shortest steps."""
    if source.nbytes < _CACHED_BYTES or source.shape[-1] <= width:
        return False
    steps = [
        abs(step) for step, extent in zip(source.strides, source.shape, strict=True) if extent > 1 and step
    ]
    return abs(source.strides[-1]) > min(steps, default=0)


def compacted(source: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself if its elements are in the order of its indices, else a copy that has them so."""
    if source.flags.c_contiguous:
        return source
    made = np.empty(source.shape, source.dtype)
    copy_strided(made, source)
    return made
