"""Correlation of patches of two images."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import pad_amounts, sum_types
from tilewright.topi.utils import InvalidShapeError, simplify


def correlation_nchw(
    data1: Tensor,
    data2: Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
) -> Tensor:
    """The mean product (or absolute difference) of patches of ``data1`` with those of ``data2`` around the same place.

    Channels of the output are displacements, rows first, from ``-max_displacement`` in steps of ``stride2``; places are
    ``stride1`` apart.
    """
    if kernel_size % 2 == 0:
        raise InvalidShapeError(f"correlation_nchw: the kernel size is odd, not {kernel_size}")
    for one, other in zip(data1.shape, data2.shape, strict=True):
        require_equal(one, other, "the shapes of both inputs of correlation_nchw")
    batch, channels, height, width = data1.shape
    (top, left), (down, right) = pad_amounts(padding, (kernel_size, kernel_size))
    radius = max_displacement // stride2
    size = 2 * radius + 1
    border = max_displacement + (kernel_size - 1) // 2
    padded1 = pad_spatial(data1, [2, 3], [top, left], [down, right], name="pad_temp")
    padded2 = pad_spatial(data2, [2, 3], [top, left], [down, right], name="pad_temp")
    out_height = simplify((height + top + down - 2 * border + stride1 - 1) // stride1)
    out_width = simplify((width + left + right - 2 * border + stride1 - 1) // stride1)
    inner, result = sum_types(data1.dtype, None)
    rc = te.reduce_axis((0, channels), name="rc")
    ry = te.reduce_axis((0, kernel_size), name="ry")
    rx = te.reduce_axis((0, kernel_size), name="rx")

    def element(n: Any, q: Any, i: Any, j: Any) -> Any:
        y, x = i * stride1 + max_displacement + ry.var, j * stride1 + max_displacement + rx.var
        down_by, right_by = (q // size - radius) * stride2, (q % size - radius) * stride2
        a = padded1(n, rc, y, x).astype(inner)
        b = padded2(n, rc, y + down_by, x + right_by).astype(inner)
        return te.sum(a * b if is_multiply else te.abs(a - b), axis=[rc, ry, rx])

    total = te.compute(
        (batch, size * size, out_height, out_width), element, name="correlation", tag="correlation_nchw"
    )
    count = simplify(channels * kernel_size * kernel_size)
    made: Tensor = te.compute(
        total.shape,
        lambda *indices: (total(*indices) / tir.Cast(inner, count)).astype(result),
        name="correlation_mean",
        tag=tag.ELEMWISE,
    )
    return made
