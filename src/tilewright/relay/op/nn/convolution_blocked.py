"""Convolutions in blocked layouts, and those whose weight is packed into tiles for a matrix product.

Their shape cannot be inferred from the packed weight, so ``channels`` and ``kernel_size`` are attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import te, topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.definition import OpPattern, Relation, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.convolution import spatial_attributes
from tilewright.relay.op.nn.convolution_attributes import Conv2DAttrs, ConvGemmWeightTransformAttrs
from tilewright.relay.op.nn.convolution_rules import convolve, out_dtype, out_layout
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import per_axis, slid_extents
from tilewright.relay.op.shapes import Dimension, combine, dims, same, tensor
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


def prepared_relation(space: str) -> Relation:
    """The relation of a convolution whose weight was rearranged before: the attributes tell its extents."""

    def prepared_convolution(types: Sequence[Type], attrs: Any) -> Type | None:
        data = tensor(types[0], "the data")
        if data is None:
            return None
        if attrs.channels is None or attrs.kernel_size is None:
            raise RelationError(
                "channels and kernel_size must be given, because the weight does not tell them"
            )
        given = whole_extents(dims(data), attrs.data_layout, f"NC{space}", "the data")
        kernel = per_axis(attrs.kernel_size, len(space), "kernel_size")
        extents = slid_extents(given[2:], kernel, attrs.strides, attrs.padding, attrs.dilation)
        shape = laid_out((given[0], attrs.channels, *extents), f"NC{space}", out_layout(attrs), "the result")
        return TensorType(shape, out_dtype(attrs, data))

    return prepared_convolution


def prepared_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    """The data have the layout that the attributes say; the weight is left as it is where its order has no name."""
    try:
        kernel: MaybeLayout = Layout(attrs.kernel_layout)
    except ExpressionError:
        kernel = None
    # A layout with parts of axes names the weight's order even while the weight is still whole; a plain one that does
    # not have the weight's rank is that of the weight before it was rearranged.
    if kernel is not None and kernel.name.isalpha() and len(kernel) != len(dims(types[1])):
        kernel = None
    return Layouts((Layout(attrs.data_layout), kernel), (Layout(out_layout(attrs)),), attrs)


# Channels in blocks


def blocked_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``prepared_relation``; the result's blocks must be those of the weight."""
    weight = tensor(types[1], "the weight")
    if weight is None:
        return None
    extents = dims(weight)
    block = Layout(out_layout(attrs)).factor_of("C")
    if len(extents) in (6, 7):
        same(extents[5], block, "the channels in a block of the weight, and of the result")
    return prepared_relation("HW")(types, attrs)


def _unblocked_weight(weight: Any) -> Any:
    """A weight (O, I, H, W, i, o) or (O, I, H, W, i, o, i') as OIHW."""
    if weight.ndim == 7:
        blocks = weight.transpose(0, 5, 1, 4, 6, 2, 3)
        return blocks.reshape(
            weight.shape[0] * weight.shape[5],
            weight.shape[1] * weight.shape[4] * weight.shape[6],
            *weight.shape[2:4],
        )
    blocks = weight.transpose(0, 5, 1, 4, 2, 3)
    return blocks.reshape(
        weight.shape[0] * weight.shape[5], weight.shape[1] * weight.shape[4], *weight.shape[2:4]
    )


def _blocked_reference(attrs: Any, data: Any, weight: Any) -> Any:
    plain = converted_array(data, attrs.data_layout, "NCHW")
    kernel = _unblocked_weight(weight)
    groups = plain.shape[1] // kernel.shape[1]
    made = convolve(
        plain,
        kernel,
        attrs.strides,
        attrs.padding,
        attrs.dilation,
        groups,
        attrs.out_dtype or str(data.dtype),
    )
    return converted_array(made, "NCHW", out_layout(attrs))


def _blocked_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, weight = inputs
    window = (attrs.strides, attrs.padding, attrs.dilation, attrs.data_layout, out_layout(attrs))
    if len(weight.shape) == 7:
        parts = topi.utils.get_const_int(weight.shape[6])
        result = attrs.out_dtype or str(data.dtype)
        return [topi.nn.conv2d_NCHWc_int8(data, weight, *window, result, parts)]
    return [topi.nn.conv2d_NCHWc(data, weight, *window, attrs.out_dtype or None)]


def _depthwise_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    window = (attrs.strides, attrs.padding, attrs.dilation, attrs.data_layout, out_layout(attrs))
    return [topi.nn.depthwise_conv2d_NCHWc(inputs[0], inputs[1], *window, attrs.out_dtype or None)]


def _define_blocked(name: str, compute: Callable[..., list[Tensor]]) -> Op:
    return define(
        name,
        arguments=("data", "weight"),
        attrs=Conv2DAttrs,
        relation=blocked_relation,
        compute=compute,
        reference=_blocked_reference,
        layout=prepared_layouts,
        kind=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=10,
        description="Convolution over two axes with channels in blocks.",
    )


CONV2D_NCHWC = _define_blocked("nn.contrib_conv2d_NCHWc", _blocked_compute)
DEPTHWISE_CONV2D_NCHWC = _define_blocked("nn.contrib_depthwise_conv2d_NCHWc", _depthwise_compute)


def contrib_conv2d_nchwc(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution of data in layout NCHW8c, say, with a weight OIHW8i8o; ``channels`` and ``kernel_size`` are
    needed."""
    attrs = Conv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV2D_NCHWC, (data, kernel), attrs)


def contrib_depthwise_conv2d_nchwc(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Each channel of data in layout NCHW8c, say, convolved with its own kernels, in a weight OIHW1i8o."""
    attrs = Conv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(DEPTHWISE_CONV2D_NCHWC, (data, kernel), attrs)


# A weight in tiles for a matrix product

_TILES_AT_ONCE = 4
"""The columns of the weight are padded to a multiple of this many tiles; kernels read that many at once."""


def _tiled_extents(kernel: Sequence[Dimension], rows: int, columns: int) -> tuple[Dimension, ...]:
    """(row tiles, column tiles, rows, columns) of a weight HWIO as a matrix (output, height * width * input)."""
    height, width, inputs, outputs = kernel
    step = _TILES_AT_ONCE * columns
    row_tiles = combine(lambda count: (count + rows - 1) // rows, outputs)
    column_tiles = combine(
        lambda h, w, i: (h * w * i + step - 1) // step * _TILES_AT_ONCE, height, width, inputs
    )
    return (row_tiles, column_tiles, rows, columns)


def tiled_weight_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A weight HWIO cut into tiles."""
    weight = tensor(types[0], "the weight")
    if weight is None:
        return None
    if len(weight.shape) != 4:
        raise RelationError(f"the weight is HWIO, not a tensor of {len(weight.shape)} dimensions")
    return TensorType(_tiled_extents(dims(weight), attrs.tile_rows, attrs.tile_cols), weight.dtype)


def _tiled_weight_reference(attrs: Any, weight: Any) -> Any:
    matrix = weight.reshape(-1, weight.shape[3]).T
    extents: Any = _tiled_extents(weight.shape, attrs.tile_rows, attrs.tile_cols)
    tiles_down, tiles_across, rows, columns = extents
    padded = np.zeros((tiles_down * rows, tiles_across * columns), weight.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(tiles_down, rows, tiles_across, columns).transpose(0, 2, 1, 3)


GEMM_WEIGHT_TRANSFORM = define(
    "nn.contrib_conv2d_gemm_weight_transform",
    arguments=("weights",),
    attrs=ConvGemmWeightTransformAttrs,
    relation=tiled_weight_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.conv2d_gemm_weight_transform(inputs[0], attrs.tile_rows, attrs.tile_cols)
    ],
    reference=_tiled_weight_reference,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="A weight HWIO cut into the tiles of a matrix product.",
)


def _gemm_kernel(attrs: Any, data: Tensor, weight: Tensor) -> Tensor:
    """The weight HWIO that the tiles hold."""
    height, width = per_axis(attrs.kernel_size, 2, "kernel_size")
    inputs = data.shape[3]
    rows, columns = weight.shape[2], weight.shape[3]

    def element(h: Any, w: Any, i: Any, o: Any) -> Any:
        column = (h * width + w) * inputs + i
        return weight(o // rows, column // columns, o % rows, column % columns)

    made: Tensor = te.compute(
        (height, width, inputs, attrs.channels), element, name="weight_untile", tag="injective"
    )
    return made


def _gemm_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    kernel = _gemm_kernel(attrs, inputs[0], inputs[1])
    window = (attrs.strides, attrs.padding, attrs.dilation)
    return [topi.nn.conv2d_nhwc(inputs[0], kernel, *window, attrs.out_dtype or None)]


def _gemm_reference(attrs: Any, data: Any, weight: Any) -> Any:
    height, width = per_axis(attrs.kernel_size, 2, "kernel_size")
    tiles_down, tiles_across, rows, columns = weight.shape
    matrix = weight.transpose(0, 2, 1, 3).reshape(tiles_down * rows, tiles_across * columns)
    depth = height * width * data.shape[3]
    kernel = matrix[: attrs.channels, :depth].reshape(attrs.channels, height, width, -1).transpose(0, 3, 1, 2)
    plain = converted_array(data, "NHWC", "NCHW")
    result = attrs.out_dtype or str(data.dtype)
    made = convolve(plain, kernel, attrs.strides, attrs.padding, attrs.dilation, 1, result)
    return converted_array(made, "NCHW", "NHWC")


def gemm_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``prepared_relation``, for data NHWC."""
    if attrs.data_layout != "NHWC" or out_layout(attrs) != "NHWC" or attrs.groups != 1:
        raise RelationError("a convolution with a weight in tiles takes data NHWC, in one group")
    return prepared_relation("HW")(types, attrs)


CONV2D_GEMM = define(
    "nn.contrib_conv2d_gemm_without_weight_transform",
    arguments=("data", "weight"),
    attrs=Conv2DAttrs,
    relation=gemm_relation,
    compute=_gemm_compute,
    reference=_gemm_reference,
    layout=prepared_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="Convolution over two axes with a weight cut into tiles.",
)


def contrib_conv2d_gemm_weight_transform(weights: RelayExpr, tile_rows: int, tile_cols: int) -> Call:
    """A weight HWIO, as a matrix (output, height * width * input), cut into tiles."""
    attrs = ConvGemmWeightTransformAttrs(tile_rows, tile_cols)
    return Call(GEMM_WEIGHT_TRANSFORM, (weights,), attrs)


def contrib_conv2d_gemm_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution of data NHWC with a weight from ``contrib_conv2d_gemm_weight_transform``."""
    attrs = Conv2DAttrs(
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV2D_GEMM, (data, weight), attrs)
