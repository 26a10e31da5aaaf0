"""Transposed three-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import conv_transpose, transposed_inputs


def conv3d_transpose_ncdhw(
    Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """The transposed convolution of (batch, channels, depth, height, width) with a kernel (input, output, ...)."""
    return declaration_conv3d_transpose_impl(Input, Filter, strides, padding, out_dtype, output_padding)


def conv3d_transpose_ncdhw_preprocess(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> tuple[Tensor, Tensor]:
    """The dilated and padded input and the flipped kernel, whose convolution of stride one is the result."""
    return transposed_inputs(data, kernel, strides, padding, output_padding)


def declaration_conv3d_transpose_impl(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """What ``conv3d_transpose_ncdhw`` computes."""
    return conv_transpose(
        data,
        kernel,
        strides,
        padding,
        output_padding,
        out_dtype,
        name="conv3d_transpose_ncdhw",
        tag="conv3d_transpose_ncdhw",
    )


def group_conv3d_transpose_ncdhw(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """The transposed convolution in groups, with a kernel (input, output of a group, depth, height, width)."""
    return conv_transpose(
        data,
        kernel,
        stride,
        padding,
        output_padding,
        out_dtype,
        groups,
        name="group_conv3d_transpose_ncdhw",
        tag="group_conv3d_transpose_ncdhw",
    )


@generic_func
def conv3d_transpose_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None
