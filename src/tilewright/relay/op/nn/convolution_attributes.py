"""The attributes of convolutions."""

from __future__ import annotations

from typing import Any

from tilewright.relay.op.attributes import OpAttrs, attributes


@attributes
class Conv1DAttrs(OpAttrs):
    """conv1d: ``channels`` and ``kernel_size`` may be left to the weight's shape."""

    strides: Any = (1,)
    padding: Any = (0, 0)
    dilation: Any = (1,)
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"
    out_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv2DAttrs(OpAttrs):
    """conv2d: ``channels`` and ``kernel_size`` may be left to the weight's shape."""

    strides: Any = (1, 1)
    padding: Any = (0, 0)
    dilation: Any = (1, 1)
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    auto_scheduler_rewritten_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv3DAttrs(OpAttrs):
    """conv3d: ``channels`` and ``kernel_size`` may be left to the weight's shape."""

    strides: Any = (1, 1, 1)
    padding: Any = (0, 0, 0)
    dilation: Any = (1, 1, 1)
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    auto_scheduler_rewritten_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv1DTransposeAttrs(OpAttrs):
    """conv1d_transpose: ``O`` in the kernel's layout are the channels of the input."""

    channels: Any = None
    kernel_size: Any = None
    strides: Any = (1,)
    padding: Any = (0,)
    output_padding: Any = (0,)
    dilation: Any = (1,)
    groups: int = 1
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"
    out_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv2DTransposeAttrs(OpAttrs):
    """conv2d_transpose: ``I`` in the kernel's layout are the channels of the input."""

    channels: Any = None
    kernel_size: Any = None
    strides: Any = (1, 1)
    padding: Any = (0, 0)
    output_padding: Any = (0, 0)
    dilation: Any = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW"
    kernel_layout: str = "IOHW"
    out_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv3DTransposeAttrs(OpAttrs):
    """conv3d_transpose: ``O`` in the kernel's layout are the channels of the input."""

    channels: Any = None
    kernel_size: Any = None
    strides: Any = (1, 1, 1)
    padding: Any = (0, 0, 0)
    output_padding: Any = (0, 0, 0)
    dilation: Any = (1, 1, 1)
    groups: int = 1
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv2DWinogradAttrs(OpAttrs):
    """A conv2d whose weight is transformed for tiles of ``tile_size``; the kernel's extents are ``kernel_size``."""

    tile_size: int = 4
    strides: Any = (1, 1)
    padding: Any = (0, 0)
    dilation: Any = (1, 1)
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    auto_scheduler_rewritten_layout: str = ""
    out_dtype: str = ""


@attributes
class Conv3DWinogradAttrs(OpAttrs):
    """A conv3d whose weight is transformed for tiles of ``tile_size``; the kernel's extents are ``kernel_size``."""

    tile_size: int = 4
    strides: Any = (1, 1, 1)
    padding: Any = (0, 0, 0)
    dilation: Any = (1, 1, 1)
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: str = ""


@attributes
class ConvWinogradWeightTransformAttrs(OpAttrs):
    """The size of the tiles of output."""

    tile_size: int = 4


@attributes
class ConvGemmWeightTransformAttrs(OpAttrs):
    """The tiles into which the weight is cut."""

    tile_rows: int = 4
    tile_cols: int = 4


@attributes
class Conv2DWinogradNNPACKWeightTransformAttrs(OpAttrs):
    """Which of NNPACK's algorithms the transformed weight is for."""

    convolution_algorithm: int = 0
    out_dtype: str = ""


@attributes
class DeformableConv2DAttrs(OpAttrs):
    """deformable_conv2d: channels fall into ``deformable_groups``, each with its own offsets."""

    strides: Any = (1, 1)
    padding: Any = (0, 0)
    dilation: Any = (1, 1)
    deformable_groups: int = 1
    groups: int = 1
    channels: Any = None
    kernel_size: Any = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = ""
