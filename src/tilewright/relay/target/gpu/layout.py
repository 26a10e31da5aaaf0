"""The layouts that GPUs prefer: the rules of AlterOpLayout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.op.calls import call
from tilewright.relay.op.nn.convolution_rules import is_multiplied
from tilewright.topi.utils import get_const_tuple


def conv2d_channels_last(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
) -> RelayExpr | None:
    """A conv2d of NCHW with channels last: then a convolution is a product whose rows are positions and whose depth is
    contiguous, which threads read and matrix units take 16 bytes at a time. None to leave it as it is."""
    plain = attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW" and attrs.out_layout in ("", "NCHW")
    if not plain:
        return None
    data, kernel = get_const_tuple(tinfos[0].shape), get_const_tuple(tinfos[1].shape)
    depthwise = is_multiplied(attrs.groups, data[1], kernel[0])
    if depthwise and kernel[1] != 1:
        return None
    return call(
        "nn.conv2d",
        *inputs,
        strides=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        groups=attrs.groups,
        channels=attrs.channels,
        kernel_size=attrs.kernel_size,
        data_layout="NHWC",
        kernel_layout="HWOI" if depthwise else "OHWI",
        out_layout="NHWC",
        out_dtype=attrs.out_dtype,
    )
