"""Pooling over windows, over the whole image, and to a given size; with gradients.

An average is a sum (tag ``pool_sum``) and an element-wise division, so that a schedule can keep the sum in registers.
"""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.ir.operators import least, truncdiv
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.adaptive_pooling import (
    adaptive_pool,
    adaptive_pool1d,
    adaptive_pool3d,
    global_pool,
    require_pool_type,
)
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.pooling_grad import pool_grad
from tilewright.topi.nn.pooling_windows import pool_windows
from tilewright.topi.nn.utils import sum_types

__all__ = [
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "global_pool",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
]


def _pool(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool,
    layout: str,
    count_include_pad: bool,
    letters: str,
) -> Tensor:
    require_pool_type(pool_type)
    windows = pool_windows(data, kernel, stride, dilation, padding, ceil_mode, layout, letters)
    taps = [te.reduce_axis((0, extent), name=f"rv{number}") for number, extent in enumerate(windows.kernel)]
    lowest = least(data.dtype)
    padded = pad_spatial(
        data,
        windows.axes,
        windows.before,
        windows.padded_after,
        lowest if pool_type == "max" else 0.0,
        name="pad_temp",
    )

    def read(indices: tuple[Any, ...]) -> Any:
        at = list(indices)
        for position, axis in enumerate(windows.axes):
            at[axis] = at[axis] * windows.strides[position] + taps[position].var * windows.dilation[position]
        return padded(*at)

    shape = windows.output_shape(data)
    if pool_type == "max":
        made: Tensor = te.compute(
            shape,
            lambda *indices: te.max(read(indices), axis=taps),
            name="pool_max",
            tag="pool_max",
        )
        return made
    inner, result = sum_types(data.dtype, None)
    total = te.compute(
        shape,
        lambda *indices: te.sum(read(indices).astype(inner), axis=taps),
        name="pool_sum",
        tag="pool_sum",
    )

    def average(*indices: Any) -> Any:
        count = windows.count(data, indices, count_include_pad)
        value = total(*indices)
        if inner.is_integral:
            return truncdiv(value, count.astype(inner))
        return (value / count.astype(inner)).astype(result)

    mean: Tensor = te.compute(shape, average, name="pool_avg", tag=tag.ELEMWISE)
    return mean


def pool1d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> Tensor:
    """The largest element ("max") or the average ("avg") of each window along W."""
    return _pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, "W"
    )


def pool2d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """The largest element ("max") or the average ("avg") of each window along H and W.

    ``padding`` is (top, left, bottom, right). With ``ceil_mode`` the last windows may reach beyond the padding.
    """
    return _pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, "HW"
    )


def pool3d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> Tensor:
    """The largest element ("max") or the average ("avg") of each window along D, H and W."""
    return _pool(
        data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, "DHW"
    )
