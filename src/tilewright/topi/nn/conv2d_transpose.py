"""Transposed two-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.layout import layout_transform
from tilewright.topi.nn.convolution import conv_transpose, transposed_inputs

__all__ = [
    "conv2d_transpose_alter_layout",
    "conv2d_transpose_legalize",
    "conv2d_transpose_nchw",
    "conv2d_transpose_nchw_preprocess",
    "declaration_conv2d_transpose_impl",
    "group_conv2d_transpose_nchw",
    "layout_transform",
]


def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """The transposed convolution of (batch, channels, height, width) with a kernel (input, output, height, width)."""
    return declaration_conv2d_transpose_impl(Input, Filter, strides, padding, out_dtype, output_padding)


def conv2d_transpose_nchw_preprocess(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> tuple[Tensor, Tensor]:
    """The dilated and padded input and the flipped kernel, whose convolution of stride one is the result."""
    return transposed_inputs(data, kernel, strides, padding, output_padding)


def declaration_conv2d_transpose_impl(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """What ``conv2d_transpose_nchw`` computes."""
    return conv_transpose(
        data,
        kernel,
        strides,
        padding,
        output_padding,
        out_dtype,
        name="conv2d_transpose_nchw",
        tag="conv2d_transpose_nchw",
    )


def group_conv2d_transpose_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """The transposed convolution in groups, with a kernel (input, output of a group, height, width)."""
    if groups == 1:
        return conv2d_transpose_nchw(data, kernel, stride, padding, out_dtype, output_padding)
    return conv_transpose(
        data,
        kernel,
        stride,
        padding,
        output_padding,
        out_dtype,
        groups,
        name="group_conv2d_transpose_nchw",
        tag="group_conv2d_transpose_nchw",
    )


@generic_func
def conv2d_transpose_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None


@generic_func
def conv2d_transpose_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """The call in a layout that the target prefers, or None to keep it."""
    return None
