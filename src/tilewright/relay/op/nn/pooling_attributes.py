"""The attributes of pooling operators."""

from __future__ import annotations

from typing import Any

from tilewright.relay.op.attributes import OpAttrs, attributes


@attributes
class MaxPool1DAttrs(OpAttrs):
    """max_pool1d."""

    pool_size: Any = (1,)
    strides: Any = (1,)
    dilation: Any = (1,)
    padding: Any = (0,)
    layout: str = "NCW"
    out_layout: str = ""
    ceil_mode: bool = False


@attributes
class MaxPool2DAttrs(OpAttrs):
    """max_pool2d and its gradient."""

    pool_size: Any = (1, 1)
    strides: Any = (1, 1)
    dilation: Any = (1, 1)
    padding: Any = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False


@attributes
class MaxPool3DAttrs(OpAttrs):
    """max_pool3d."""

    pool_size: Any = (1, 1, 1)
    strides: Any = (1, 1, 1)
    dilation: Any = (1, 1, 1)
    padding: Any = (0, 0, 0)
    layout: str = "NCDHW"
    out_layout: str = ""
    ceil_mode: bool = False


@attributes
class AvgPool1DAttrs(OpAttrs):
    """avg_pool1d."""

    pool_size: Any = (1,)
    strides: Any = (1,)
    dilation: Any = (1,)
    padding: Any = (0,)
    layout: str = "NCW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False


@attributes
class AvgPool2DAttrs(OpAttrs):
    """avg_pool2d and its gradient."""

    pool_size: Any = (1, 1)
    strides: Any = (1, 1)
    dilation: Any = (1, 1)
    padding: Any = (0, 0)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False


@attributes
class AvgPool3DAttrs(OpAttrs):
    """avg_pool3d."""

    pool_size: Any = (1, 1, 1)
    strides: Any = (1, 1, 1)
    dilation: Any = (1, 1, 1)
    padding: Any = (0, 0, 0)
    layout: str = "NCDHW"
    out_layout: str = ""
    ceil_mode: bool = False
    count_include_pad: bool = False


@attributes
class GlobalPool2DAttrs(OpAttrs):
    """global_max_pool2d and global_avg_pool2d."""

    layout: str = "NCHW"
    out_layout: str = ""


@attributes
class AdaptivePool1DAttrs(OpAttrs):
    """adaptive pooling over one axis; no size means the input's."""

    output_size: Any = ()
    layout: str = "NCW"
    out_layout: str = ""


@attributes
class AdaptivePool2DAttrs(OpAttrs):
    """adaptive pooling over two axes; no size means the input's."""

    output_size: Any = ()
    layout: str = "NCHW"
    out_layout: str = ""


@attributes
class AdaptivePool3DAttrs(OpAttrs):
    """adaptive pooling over three axes; no size means the input's."""

    output_size: Any = ()
    layout: str = "NCDHW"
    out_layout: str = ""
