"""Transposed one-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import conv_transpose


def conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    """The transposed convolution of (batch, channels, width) with a kernel (input, output, width)."""
    return conv_transpose(
        data,
        kernel,
        stride,
        padding,
        output_padding,
        out_dtype,
        name="conv1d_transpose_ncw",
        tag="conv1d_transpose_ncw",
    )


def group_conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """The transposed convolution in groups, with a kernel (input, output of a group, width)."""
    return conv_transpose(
        data,
        kernel,
        stride,
        padding,
        output_padding,
        out_dtype,
        groups,
        name="group_conv1d_transpose_ncw",
        tag="group_conv1d_transpose_ncw",
    )


@generic_func
def conv1d_transpose_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None
