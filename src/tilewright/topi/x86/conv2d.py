"""Convolutions for x86: NCHW through blocked layouts, and the blocked layouts themselves."""

from __future__ import annotations

from typing import Any

from tilewright.schedule.cpu.layouts import conv2d_layouts
from tilewright.te import Tensor
from tilewright.topi.nn.conv2d import conv2d_nchw as plain_conv2d_nchw
from tilewright.topi.nn.conv2d import (
    conv2d_NCHWc,
    conv2d_nhwc,
    unpack_NCHWc_to_nchw,
)
from tilewright.topi.nn.conv2d import group_conv2d_nchw as plain_group_conv2d_nchw
from tilewright.topi.nn.depthwise_conv2d import depthwise_conv2d_nchw as plain_depthwise_conv2d_nchw
from tilewright.topi.nn.depthwise_conv2d import depthwise_conv2d_nhwc
from tilewright.topi.utils import get_const_tuple
from tilewright.topi.x86.narrow import conv2d_NCHWc_int8
from tilewright.topi.x86.packing import pack_channels, pack_kernel

__all__ = [
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_nchw",
    "conv2d_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "group_conv2d_nchw",
]


def conv2d_nchw(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The convolution of NCHW with OIHW, computed with the channels in blocks where these are known."""
    return group_conv2d_nchw(data, kernel, strides, padding, dilation, 1, out_dtype)


def group_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of NCHW with OIHW in groups, computed with the channels in blocks where these are known."""
    in_channels, out_channels = get_const_tuple([data.shape[1], kernel.shape[0]])
    if not isinstance(in_channels, int) or not isinstance(out_channels, int):
        return plain_group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)
    layouts = conv2d_layouts(in_channels, out_channels, groups, str(data.dtype))
    if layouts is None or groups == in_channels:
        if groups == 1:
            return plain_conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
        return plain_group_conv2d_nchw(data, kernel, strides, padding, dilation, groups, out_dtype)
    made = conv2d_NCHWc(
        pack_channels(data, layouts.ic_bn),
        pack_kernel(kernel, layouts.ic_bn, layouts.oc_bn),
        strides,
        padding,
        dilation,
        layouts.data_layout,
        layouts.out_layout,
        out_dtype or str(data.dtype),
    )
    return unpack_NCHWc_to_nchw(made, made.dtype)


def depthwise_conv2d_nchw(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> Tensor:
    """The depthwise convolution of NCHW, computed as it is: a change of layout would cost what it saves."""
    return plain_depthwise_conv2d_nchw(data, kernel, strides, padding, dilation, out_dtype)
