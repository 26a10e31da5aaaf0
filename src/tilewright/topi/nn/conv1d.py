"""One-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import conv


def conv1d(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    layout: str = "NCW",
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in layout NCW (kernel OIW) or NWC (kernel WIO)."""
    if layout == "NCW":
        return conv1d_ncw(data, kernel, strides, padding, dilation, out_dtype)
    if layout == "NWC":
        return conv1d_nwc(data, kernel, strides, padding, dilation, out_dtype)
    raise OpAttributeInvalid(f"conv1d supports the layouts NCW and NWC, not {layout!r}")


def conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of (batch, channels, width) with a kernel (output, input, width)."""
    return conv(
        data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype, "conv1d_ncw", "conv1d_ncw"
    )


def conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of (batch, width, channels) with a kernel (width, input, output)."""
    return conv(
        data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype, "conv1d_nwc", "conv1d_nwc"
    )


def group_conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in groups of (batch, channels, width) with a kernel (output, input of a group, width)."""
    return conv(
        data,
        kernel,
        strides,
        padding,
        dilation,
        groups,
        "NCW",
        "OIW",
        out_dtype,
        "group_conv1d_ncw",
        "group_conv1d_ncw",
    )


def group_conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution in groups of (batch, width, channels) with a kernel (width, input of a group, output)."""
    return conv(
        data,
        kernel,
        strides,
        padding,
        dilation,
        groups,
        "NWC",
        "WIO",
        out_dtype,
        "group_conv1d_nwc",
        "group_conv1d_nwc",
    )
