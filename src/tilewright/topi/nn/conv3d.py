"""Three-dimensional convolution."""

from __future__ import annotations

from typing import Any

from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi.nn.convolution import conv
from tilewright.topi.nn.utils import in_rewritten_layout
from tilewright.topi.nn.winograd import conv3d_winograd_weight_transform

__all__ = ["conv3d_alter_layout", "conv3d_ncdhw", "conv3d_ndhwc", "conv3d_winograd_weight_transform"]


def conv3d_ncdhw(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
    groups: int = 1,
) -> Tensor:
    """The convolution of NCDHW with a kernel (output, input of a group, depth, height, width)."""
    return conv(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        groups,
        "NCDHW",
        "OIDHW",
        out_dtype,
        "conv3d_ncdhw",
        "conv3d_ncdhw",
    )


def conv3d_ndhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
    groups: int = 1,
) -> Tensor:
    """The convolution of NDHWC with a kernel (depth, height, width, input of a group, output)."""
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            Filter,
            auto_scheduler_rewritten_layout,
            ["rd", "rh", "rw", "rc", "cc"],
            lambda original: conv3d_ndhwc(
                Input, original, stride, padding, dilation, out_dtype, groups=groups
            ),
        )
    return conv(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        groups,
        "NDHWC",
        "DHWIO",
        out_dtype,
        "conv3d_ndhwc",
        "conv3d_ndhwc",
    )


@generic_func
def conv3d_alter_layout(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
    """The call in a layout that the target prefers, or None to keep it."""
    return None
