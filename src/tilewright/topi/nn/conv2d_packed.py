"""Convolution of NCHW whose channels are packed into blocks on the way, and unpacked after."""

from __future__ import annotations

from typing import Any

from tilewright.te import Tensor
from tilewright.topi.nn.conv2d import conv2d_NCHWc, unpack_NCHWc_to_nchw
from tilewright.topi.nn.packing import pack_channels, pack_kernel


def conv2d_nchw_packed(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
    blocks: tuple[int, int],
) -> Tensor:
    """The convolution of NCHW with OIHW, in groups if the kernel has fewer input channels than the data.

    ``blocks`` are the channels of the input and of the output that lie together; they divide those of a group.
    """
    inputs, outputs = blocks
    made = conv2d_NCHWc(
        pack_channels(data, inputs),
        pack_kernel(kernel, inputs, outputs),
        strides,
        padding,
        dilation,
        f"NCHW{inputs}c",
        f"NCHW{outputs}c",
        out_dtype or str(data.dtype),
    )
    return unpack_NCHWc_to_nchw(made, made.dtype)
