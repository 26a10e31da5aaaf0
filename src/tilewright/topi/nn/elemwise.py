"""Elementwise activations."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import InvalidShapeError, get_const_tuple


def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``; NaN and zeros stay as they are."""
    zero = tir.const(0, x.dtype)
    made: Tensor = te.compute(
        x.shape, lambda *indices: tir.Max(x(*indices), zero), name="T_relu", tag=tag.ELEMWISE
    )
    return made


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """``x`` where it is positive, ``alpha * x`` elsewhere."""

    def element(*indices: Any) -> Any:
        value = x(*indices)
        return tir.Select(value > 0, value, value * tir.const(alpha, x.dtype))

    made: Tensor = te.compute(x.shape, element, name="T_leaky_relu", tag=tag.ELEMWISE)
    return made


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """``x`` where it is positive, ``slope * x`` elsewhere, with one slope for each index along ``axis``."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise InvalidShapeError(f"prelu: axis {axis} of a tensor of {rank} dimensions")
    channel = axis % rank
    expected, given = get_const_tuple([x.shape[channel]]), get_const_tuple(slope.shape)
    if len(given) != 1 or (isinstance(given[0], int) and isinstance(expected[0], int) and given != expected):
        raise InvalidShapeError(f"prelu: axis {axis} has size {expected[0]}, the slopes have shape {given}")

    def element(*indices: Any) -> Any:
        value = x(*indices)
        return tir.Select(value > 0, value, value * slope(indices[channel]))

    made: Tensor = te.compute(x.shape, element, name="T_prelu", tag=tag.BROADCAST)
    return made
