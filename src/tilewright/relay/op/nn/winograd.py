"""Winograd convolutions with pre-transformed weights, and the weight transform.

A transformed weight is ``G g G^T``. ``G`` has more rows than columns and full rank, so the weight can be recovered: the
references do that, and convolve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright import te, topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.definition import OpPattern, Relation, RelationError, define
from tilewright.relay.op.nn.convolution import spatial_attributes
from tilewright.relay.op.nn.convolution_attributes import (
    Conv2DWinogradAttrs,
    Conv2DWinogradNNPACKWeightTransformAttrs,
    Conv3DWinogradAttrs,
    ConvWinogradWeightTransformAttrs,
)
from tilewright.relay.op.nn.convolution_blocked import prepared_layouts, prepared_relation
from tilewright.relay.op.nn.convolution_rules import convolve, out_layout
from tilewright.relay.op.nn.layout_conversion import converted, converted_array
from tilewright.relay.op.nn.windows import per_axis
from tilewright.relay.op.shapes import dims, known, tensor
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.convolution import conv
from tilewright.topi.nn.winograd_util import integer_winograd_transforms, winograd_matrices
from tilewright.topi.utils import const_matrix

_PRODUCTS_AT_ONCE: Final = 1 << 18
"""Multiplications of one matrix product: what it reads and writes stays in the cache, and it is too small for BLAS to
share among threads, which on a busy machine wait for each other a hundred times as long as the product takes."""


def transforms_depth(depth: Any, size: Any) -> bool:
    """True if a three-dimensional kernel is transformed along its depth too: a cube of three to seven taps."""
    return known(depth, size) and 2 < depth < 8 and depth == size


# Two axes


def weight_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A weight OIHW as (n, n, O, I)."""
    weight = tensor(types[0], "the weight")
    if weight is None:
        return None
    if len(weight.shape) != 4:
        raise RelationError(f"the weight is OIHW, not a tensor of {len(weight.shape)} dimensions")
    outputs, inputs, height, width = dims(weight)
    if not known(height, width) or height != width:
        raise RelationError(f"the kernel has equal extents, not {height} and {width}")
    size = attrs.tile_size + height - 1
    return TensorType((size, size, outputs, inputs), weight.dtype)


def _weight_reference(attrs: Any, weight: Any) -> Any:
    g = winograd_matrices(attrs.tile_size, weight.shape[2])[2]
    rows = weight.reshape(-1, weight.shape[2] * weight.shape[3])
    both = np.kron(g, g)
    made = np.empty((len(both), len(rows)), weight.dtype)
    at_once = max(1, _PRODUCTS_AT_ONCE // (64 * both.size)) * 64
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        made[:, part] = both @ rows[part].T.astype(np.float64)
    return made.reshape(len(g), len(g), *weight.shape[:2])


CONV2D_WEIGHT = define(
    "nn.contrib_conv2d_winograd_weight_transform",
    arguments=("weight",),
    attrs=ConvWinogradWeightTransformAttrs,
    relation=weight_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.conv2d_winograd_weight_transform(inputs[0], attrs.tile_size)
    ],
    reference=_weight_reference,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="A weight OIHW transformed for tiles of outputs.",
)


def contrib_conv2d_winograd_weight_transform(weight: RelayExpr, tile_size: int) -> Call:
    """A weight OIHW transformed for tiles of ``tile_size`` outputs: (n, n, O, I) with n = tile_size + kernel - 1."""
    return Call(CONV2D_WEIGHT, (weight,), ConvWinogradWeightTransformAttrs(tile_size))


def _restored(attrs: Any, weight: Any) -> Any:
    """The weight OIHW of a transformed one."""
    size = per_axis(attrs.kernel_size, 2, "kernel_size")[0]
    tile = weight.shape[0] - size + 1
    is_integer = weight.ndim == 6
    if is_integer:
        weight = weight.swapaxes(4, 5).reshape(*weight.shape[:3], -1, weight.shape[4])
    if weight.ndim == 5:
        weight = weight.swapaxes(3, 4).reshape(*weight.shape[:2], -1, weight.shape[3])
    g = np.linalg.pinv(
        integer_winograd_transforms(tile).g if is_integer else winograd_matrices(tile, size)[2]
    )
    made = np.einsum("ha,wb,aboi->oihw", g, g, weight.astype(np.float64))
    return np.rint(made) if is_integer else made


def _convolved(attrs: Any, data: Any, kernel: Any, plain: str) -> Any:
    wide = converted_array(data, attrs.data_layout, plain).astype(np.float64)
    result = attrs.out_dtype or str(data.dtype)
    made = convolve(wide, kernel, attrs.strides, attrs.padding, attrs.dilation, attrs.groups, result)
    return converted_array(made, plain, out_layout(attrs))


def square_relation(space: str) -> Relation:
    """As ``prepared_relation``; strides and dilation must be one, the kernel's height and width equal, in one group."""
    plain = prepared_relation(space)

    def winograd_convolution(types: Sequence[Type], attrs: Any) -> Type | None:
        count = len(space)
        ones = (1,) * count
        steps = (per_axis(attrs.strides, count, "strides"), per_axis(attrs.dilation, count, "dilation"))
        if steps != (ones, ones) or attrs.groups != 1:
            raise RelationError("Winograd convolution needs strides and dilation of 1, and one group")
        if attrs.kernel_size is not None:
            sizes = per_axis(attrs.kernel_size, count, "kernel_size")
            if sizes[-1] != sizes[-2]:
                raise RelationError(f"the kernel has equal extents, not {sizes}")
        return plain(types, attrs)

    return winograd_convolution


def _unpacked(weight: Tensor) -> Tensor:
    """A transformed weight as (n, n, O, I), also if it was packed in blocks of outputs (n, n, O/o, I, o)."""
    if len(weight.shape) == 4:
        return weight
    if len(weight.shape) == 6:
        raise OpAttributeInvalid(
            "Winograd filtering of integers has a kernel for blocked channels on CPUs only"
        )
    size, _, outer, inputs, block = weight.shape
    made: Tensor = te.compute(
        (size, size, outer * block, inputs),
        lambda eps, nu, o, i: weight(eps, nu, o // block, i, o % block),
        name="unpacked_weight",
        tag=topi.tag.INJECTIVE,
    )
    return made


def _conv2d_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    layout = "NHWC" if attrs.data_layout == "NHWC" else "NCHW"
    compute = {
        "NHWC": topi.nn.conv2d_winograd_nhwc_without_weight_transform,
        "NCHW": topi.nn.conv2d_winograd_nchw_without_weight_transform,
    }[layout]
    made = compute(
        converted(inputs[0], attrs.data_layout, layout),
        _unpacked(inputs[1]),
        attrs.strides,
        attrs.padding,
        attrs.dilation,
        attrs.out_dtype or None,
        kernel_size=per_axis(attrs.kernel_size, 2, "kernel_size")[0],
    )
    return [converted(made, layout, out_layout(attrs))]


CONV2D_WINOGRAD = define(
    "nn.contrib_conv2d_winograd_without_weight_transform",
    arguments=("data", "weight"),
    attrs=Conv2DWinogradAttrs,
    relation=square_relation("HW"),
    compute=_conv2d_compute,
    reference=lambda attrs, data, weight: _convolved(attrs, data, _restored(attrs, weight), "NCHW"),
    layout=prepared_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="Convolution over two axes with a transformed weight.",
)


def contrib_conv2d_winograd_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    tile_size: int,
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
    """The convolution with a weight from ``contrib_conv2d_winograd_weight_transform``, as it is or packed in blocks of
    outputs, (n, n, O/o, I, o). Of 8-bit data with a weight in int16 that was transformed in integers, it is in lanes of
    two inputs: (n, n, O/o, I/2, o, 2)."""
    attrs = Conv2DWinogradAttrs(
        tile_size=tile_size,
        **spatial_attributes(2, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV2D_WINOGRAD, (data, weight), attrs)


# Three axes


def volume_weight_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A weight OIDHW as (n, n, n, O, I), or (n, n, D, O, I) where the depth is not transformed."""
    weight = tensor(types[0], "the weight")
    if weight is None:
        return None
    if len(weight.shape) != 5:
        raise RelationError(f"the weight is OIDHW, not a tensor of {len(weight.shape)} dimensions")
    outputs, inputs, depth, height, width = dims(weight)
    if not known(depth, height, width) or height != width:
        raise RelationError(f"the kernel has equal extents, not {height} and {width}")
    size = attrs.tile_size + height - 1
    middle = size if transforms_depth(depth, height) else depth
    return TensorType((size, size, middle, outputs, inputs), weight.dtype)


def _volume_weight_reference(attrs: Any, weight: Any) -> Any:
    depth, size = weight.shape[2:4]
    g = winograd_matrices(attrs.tile_size, size)[2]
    wide = weight.astype(np.float64)
    if transforms_depth(depth, size):
        return np.einsum("cd,ah,bw,oidhw->caboi", g, g, g, wide).astype(weight.dtype)
    return np.einsum("ah,bw,oidhw->abdoi", g, g, wide).astype(weight.dtype)


CONV3D_WEIGHT = define(
    "nn.contrib_conv3d_winograd_weight_transform",
    arguments=("weight",),
    attrs=ConvWinogradWeightTransformAttrs,
    relation=volume_weight_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.conv3d_winograd_weight_transform(inputs[0], attrs.tile_size)
    ],
    reference=_volume_weight_reference,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="A weight OIDHW transformed for tiles of outputs.",
)


def contrib_conv3d_winograd_weight_transform(weight: RelayExpr, tile_size: int) -> Call:
    """A weight OIDHW transformed for tiles of ``tile_size`` outputs; along the depth too where that is a cube."""
    return Call(CONV3D_WEIGHT, (weight,), ConvWinogradWeightTransformAttrs(tile_size))


def _volume_back(attrs: Any, count: int) -> tuple[bool, Any]:
    """Whether the depth was transformed, and the matrix that takes a transformed axis back."""
    depth, size, _ = per_axis(attrs.kernel_size, 3, "kernel_size")
    return transforms_depth(depth, size), np.linalg.pinv(winograd_matrices(count - size + 1, size)[2])


def _volume_reference(attrs: Any, data: Any, weight: Any) -> Any:
    along, g = _volume_back(attrs, weight.shape[0])
    wide = weight.astype(np.float64)
    kernel = (
        np.einsum("dc,ha,wb,caboi->oidhw", g, g, g, wide)
        if along
        else np.einsum("ha,wb,abdoi->oidhw", g, g, wide)
    )
    return _convolved(attrs, data, kernel, "NCDHW")


def _volume_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    """The weight is taken back to OIDHW, and convolved with directly."""
    weight = inputs[1]
    (size,) = topi.utils.get_const_tuple([weight.shape[0]])
    along, matrix = _volume_back(attrs, size)
    g = const_matrix(matrix.astype(str(weight.dtype)), "G_inverse")
    a, b, c = (te.reduce_axis((0, size), name=name) for name in ("r_a", "r_b", "r_c"))
    depth, height, width = per_axis(attrs.kernel_size, 3, "kernel_size")

    def element(o: Any, i: Any, d: Any, h: Any, w: Any) -> Any:
        if along:
            return te.sum(weight(c, a, b, o, i) * g(d, c) * g(h, a) * g(w, b), axis=[c, a, b])
        return te.sum(weight(a, b, d, o, i) * g(h, a) * g(w, b), axis=[a, b])

    shape = (attrs.channels, weight.shape[4], depth, height, width)
    kernel = te.compute(shape, element, name="weight_restored")
    window = (attrs.strides, attrs.padding, attrs.dilation)
    data = converted(inputs[0], attrs.data_layout, "NCDHW")
    made = conv(
        data, kernel, *window, 1, "NCDHW", "OIDHW", attrs.out_dtype or None, "conv3d_ncdhw", "conv3d_ncdhw"
    )
    return [converted(made, "NCDHW", out_layout(attrs))]


CONV3D_WINOGRAD = define(
    "nn.contrib_conv3d_winograd_without_weight_transform",
    arguments=("data", "weight"),
    attrs=Conv3DWinogradAttrs,
    relation=square_relation("DHW"),
    compute=_volume_compute,
    reference=_volume_reference,
    layout=prepared_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="Convolution over three axes with a transformed weight.",
)


def contrib_conv3d_winograd_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    tile_size: int,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """The convolution with a weight from ``contrib_conv3d_winograd_weight_transform``."""
    attrs = Conv3DWinogradAttrs(
        tile_size=tile_size,
        **spatial_attributes(3, strides, padding, dilation, channels, kernel_size),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return Call(CONV3D_WINOGRAD, (data, weight), attrs)


# NNPACK


def nnpack_weight_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A weight OIHW of three by three taps as (O, I, 8, 8)."""
    weight = tensor(types[0], "the weight")
    if weight is None:
        return None
    if len(weight.shape) != 4 or dims(weight)[2:] != (3, 3):
        raise RelationError(f"the weight is OIHW with three by three taps, not {weight}")
    outputs, inputs = dims(weight)[:2]
    return TensorType((outputs, inputs, 8, 8), attrs.out_dtype or weight.dtype)


NNPACK_WEIGHT = define(
    "nn.contrib_conv2d_winograd_nnpack_weight_transform",
    arguments=("weight",),
    attrs=Conv2DWinogradNNPACKWeightTransformAttrs,
    relation=nnpack_weight_relation,
    # The order inside a tile is NNPACK's own: only that library can make it.
    reference=None,
    kind=OpPattern.OPAQUE,
    level=10,
    description="A weight OIHW transformed by NNPACK, which has to do it itself.",
)


def contrib_conv2d_winograd_nnpack_weight_transform(
    weight: RelayExpr, convolution_algorithm: int, out_dtype: str = ""
) -> Call:
    """A weight OIHW transformed by NNPACK."""
    attrs = Conv2DWinogradNNPACKWeightTransformAttrs(convolution_algorithm, out_dtype)
    return Call(NNPACK_WEIGHT, (weight,), attrs)
