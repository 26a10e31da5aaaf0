"""Local response normalisation: each element divided by a power of the energy around it."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import sum_types
from tilewright.topi.utils import InvalidShapeError


def lrn(
    data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2
) -> Tensor:
    """``data / (bias + alpha / size * sum(data ** 2)) ** beta``, summed over ``size`` neighbours along ``axis``."""
    rank = len(data.shape)
    if not -rank <= axis < rank:
        raise InvalidShapeError(f"lrn: axis {axis} of a tensor of {rank} dimensions")
    if size < 1 or size % 2 == 0:
        raise OpAttributeInvalid(f"lrn: the size of the window is odd and positive, not {size}")
    along = axis % rank
    inner, result = sum_types(data.dtype, None)
    padded = pad_spatial(data, [along], [size // 2], [size // 2], name="pad_data")
    window = te.reduce_axis((0, size), name="rxs")

    def square(*indices: Any) -> Any:
        value = padded(*indices[:along], indices[along] + window, *indices[along + 1 :]).astype(inner)
        return te.sum(value * value, axis=window)

    energy = te.compute(data.shape, square, name="sqr_sum")
    made: Tensor = te.compute(
        data.shape,
        lambda *indices: (
            data(*indices).astype(inner)
            / te.power(
                tir.const(bias, inner) + tir.const(alpha / size, inner) * energy(*indices),
                tir.const(beta, inner),
            )
        ).astype(result),
        name="T_lrn",
        tag=tag.BROADCAST,
    )
    return made
