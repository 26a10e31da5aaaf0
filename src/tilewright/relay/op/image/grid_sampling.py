"""``grid_sample``, ``affine_grid`` and ``dilation2d``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.image.resize_reference import cubic_weights
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.nn.layout_conversion import converted, converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import pad_sides, pad_tuple, padded_array, per_axis, slid_extents, taps
from tilewright.relay.op.shapes import dims, require_source, same, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


@attributes
class AffineGridAttrs(OpAttrs):
    """affine_grid: the height and width of the image that is to be read."""

    target_shape: Any = ()


@attributes
class GridSampleAttrs(OpAttrs):
    """grid_sample: how to read between pixels, what is outside, and which place -1 and 1 are."""

    method: str = "bilinear"
    layout: str = "NCHW"
    padding_mode: str = "zeros"
    align_corners: bool = True

    def check(self) -> None:
        """Layout, method and padding must be known ones."""
        if self.layout not in ("NCHW", "NCDHW"):
            raise OpAttributeInvalid(f"grid_sample takes images NCHW or NCDHW, not {self.layout!r}")
        if self.method not in ("bilinear", "nearest", "bicubic"):
            raise OpAttributeInvalid(f"grid_sample has no method {self.method!r}")
        if self.padding_mode not in ("zeros", "border", "reflection"):
            raise OpAttributeInvalid(
                f"grid_sample pads with zeros, border or reflection, not {self.padding_mode!r}"
            )


@attributes
class Dilation2DAttrs(OpAttrs):
    """dilation2d: the windows."""

    strides: Any = (1, 1)
    padding: Any = (0, 0)
    dilations: Any = (1, 1)
    data_layout: str = "NCHW"
    kernel_layout: str = "IHW"
    out_dtype: str = ""


# Places


def affine_grid_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """(batch, 2, 3) to (batch, 2, height, width)."""
    data = tensor(types[0], "the maps")
    if data is None:
        return None
    if len(data.shape) != 3 or len(attrs.target_shape) != 2:
        raise RelationError("maps are (batch, 2, 3), and target_shape is (height, width)")
    batch, rows, columns = dims(data)
    same(rows, 2, "the rows of a map")
    same(columns, 3, "the columns of a map")
    return TensorType((batch, 2, *attrs.target_shape), data.dtype)


def _affine_grid_reference(attrs: Any, data: Any) -> Any:
    height, width = attrs.target_shape
    y, x = (np.linspace(-1, 1, size) if size > 1 else np.zeros(1) for size in (height, width))
    rows, columns = np.meshgrid(y, x, indexing="ij")
    places = np.stack([columns, rows, np.ones_like(rows)]).reshape(3, -1)
    return (data.astype(np.float64) @ places).reshape(-1, 2, height, width).astype(data.dtype)


AFFINE_GRID = define(
    "image.affine_grid",
    arguments=("data",),
    attrs=AffineGridAttrs,
    relation=affine_grid_relation,
    compute=lambda attrs, inputs, out_type: [topi.image.affine_grid(inputs[0], attrs.target_shape)],
    reference=_affine_grid_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="The places to which affine maps send the pixels of an image.",
)


def affine_grid(data: RelayExpr, target_shape: Any = None) -> Call:
    """The places (batch, 2, height, width), horizontal first, to which maps (batch, 2, 3) send pixels in -1 to 1."""
    if isinstance(target_shape, Constant):
        target_shape = [int(extent) for extent in target_shape.data.numpy().reshape(-1)]
    return Call(AFFINE_GRID, (data,), AffineGridAttrs(tuple(target_shape or ())))


def grid_sample_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The images' channels at the places of the grid."""
    data, grid = tensor(types[0], "the data"), tensor(types[1], "the grid")
    if data is None or grid is None:
        return None
    count = len(attrs.layout)
    if len(data.shape) != count or len(grid.shape) != count:
        raise RelationError(
            f"data and grid have {count} dimensions, not {len(data.shape)} and {len(grid.shape)}"
        )
    batch = same(dims(data)[0], dims(grid)[0], "the batches of data and grid")
    same(dims(grid)[1], count - 2, "the coordinates of a place")
    shape = (batch, dims(data)[1], *dims(grid)[2:])
    require_source(dims(data)[2:], shape, f"grid_sample: there are no pixels in {data} to read")
    return TensorType(shape, data.dtype)


class _Outside:
    """The treatment of positions outside an image of ``size`` pixels along an axis."""

    def __init__(self, attrs: Any, size: int) -> None:
        self.mode, self.aligned, self.size = attrs.padding_mode, attrs.align_corners, size

    def pixel(self, place: Any) -> Any:
        """A place in -1 to 1 in pixels."""
        if self.aligned:
            return (place + 1) / 2 * (self.size - 1)
        return ((place + 1) * self.size - 1) / 2

    def inside(self, x: Any) -> Any:
        """A coordinate brought to where there are pixels; where there are zeros, as it is."""
        if self.mode == "zeros":
            return x
        if self.mode == "reflection":
            low, span = (0.0, self.size - 1) if self.aligned else (-0.5, self.size)
            if span > 0:
                turned = np.abs(x - low) % (2 * span)
                x = low + np.where(turned > span, 2 * span - turned, turned)
        return np.clip(x, 0, self.size - 1)

    def tap(self, index: Any, weight: Any) -> tuple[Any, Any]:
        """An index inside, and its weight, which is zero where there is no pixel."""
        exists = (index >= 0) & (index < self.size)
        return np.clip(index, 0, self.size - 1).astype(int), np.where(exists, weight, 0)

    def taps(self, x: Any, method: str) -> list[tuple[Any, Any]]:
        """The pixels to read along the axis, with weights."""
        if method == "nearest":
            return [self.tap(np.rint(self.inside(x)), 1.0)]
        if method == "bilinear":
            place = self.inside(x)
            low = np.floor(place)
            return [self.tap(low, 1 - (place - low)), self.tap(low + 1, place - low)]
        low = np.floor(x)
        weights = cubic_weights(x - low, -0.75)
        return [
            self.tap(np.rint(self.inside(low + offset)), weight)
            for offset, weight in zip((-1, 0, 1, 2), weights, strict=True)
        ]


def _grid_sample_reference(attrs: Any, data: Any, grid: Any) -> Any:
    count = data.ndim - 2
    made = np.zeros((*data.shape[:2], *grid.shape[2:]))
    wide = data.astype(np.float64)
    for n in range(len(data)):
        choices = []
        for axis in range(count):
            outside = _Outside(attrs, data.shape[2 + axis])
            # The grid lists the innermost axis first.
            place = outside.pixel(grid[n, count - 1 - axis].astype(np.float64))
            choices.append(outside.taps(place, attrs.method))
        for chosen in np.ndindex(*(len(each) for each in choices)):
            picked = [choices[axis][number] for axis, number in enumerate(chosen)]
            weight: Any = 1.0
            for _, one in picked:
                weight = weight * one
            made[n] += wide[n][(slice(None), *(index for index, _ in picked))] * weight
    return made.astype(data.dtype)


GRID_SAMPLE = define(
    "image.grid_sample",
    arguments=("data", "grid"),
    attrs=GridSampleAttrs,
    relation=grid_sample_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.image.grid_sample(
            inputs[0], inputs[1], attrs.method, attrs.layout, attrs.padding_mode, attrs.align_corners
        )
    ],
    reference=_grid_sample_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Images read at given places.",
)


def grid_sample(
    data: RelayExpr,
    grid: RelayExpr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Call:
    """``data`` read at the places of ``grid`` (batch, 2, height, width; horizontal first), which are in -1 to 1."""
    return Call(GRID_SAMPLE, (data, grid), GridSampleAttrs(method, layout, padding_mode, align_corners))


# Dilation


def dilation2d_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """As a depthwise convolution with one kernel for each channel."""
    data, weight = tensor(types[0], "the data"), tensor(types[1], "the weight")
    if data is None or weight is None:
        return None
    given = whole_extents(dims(data), attrs.data_layout, "NCHW", "the data")
    kernel = whole_extents(dims(weight), attrs.kernel_layout, "IHW", "the weight")
    same(kernel[0], given[1], "the weight's channels, and the data's")
    extents = slid_extents(given[2:], kernel[1:], attrs.strides, attrs.padding, attrs.dilations)
    shape = laid_out((*given[:2], *extents), "NCHW", attrs.data_layout, "the result")
    return TensorType(shape, attrs.out_dtype or data.dtype)


def _dilation2d_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    layout, order = ("NHWC", "HWI") if attrs.data_layout == "NHWC" else ("NCHW", "IHW")
    compute = topi.image.dilation2d_nhwc if layout == "NHWC" else topi.image.dilation2d_nchw
    made = compute(
        converted(inputs[0], attrs.data_layout, layout),
        converted(inputs[1], attrs.kernel_layout, order),
        attrs.strides,
        attrs.padding,
        attrs.dilations,
        attrs.out_dtype or None,
    )
    return [converted(made, layout, attrs.data_layout)]


def _dilation2d_reference(attrs: Any, data: Any, weight: Any) -> Any:
    plain = converted_array(data, attrs.data_layout, "NCHW")
    kernel = converted_array(weight, attrs.kernel_layout, "IHW")
    kind = numpy_dtype(DataType(attrs.out_dtype)) if attrs.out_dtype else data.dtype
    lowest = np.iinfo(data.dtype).min if data.dtype.kind in "iu" else np.finfo(data.dtype).min
    padded = padded_array(plain, 2, *pad_sides(attrs.padding, 2), lowest)
    extents: Any = slid_extents(
        plain.shape[2:], kernel.shape[1:], attrs.strides, attrs.padding, attrs.dilations
    )
    made: Any = None
    for (y, x), view in taps(padded, 2, kernel.shape[1:], attrs.strides, attrs.dilations, extents):
        value = view.astype(kind) + kernel[:, y, x].astype(kind)[:, None, None]
        made = value if made is None else np.maximum(made, value)
    return converted_array(made, "NCHW", attrs.data_layout)


def _dilation2d_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    data = Layout(attrs.data_layout)
    return Layouts((data, Layout(attrs.kernel_layout)), (data,), attrs)


DILATION2D = define(
    "image.dilation2d",
    arguments=("data", "weight"),
    attrs=Dilation2DAttrs,
    relation=dilation2d_relation,
    compute=_dilation2d_compute,
    reference=_dilation2d_reference,
    layout=_dilation2d_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=2,
    description="The largest sum of pixel and kernel in each window.",
)


def dilation2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilations: Any = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str = "",
) -> Call:
    """The largest sum of pixel and kernel in each window, with a kernel for each channel; padding never wins."""
    attrs = Dilation2DAttrs(
        per_axis(strides, 2, "strides"),
        pad_tuple(padding, 2),
        per_axis(dilations, 2, "dilations"),
        data_layout,
        kernel_layout,
        out_dtype,
    )
    return Call(DILATION2D, (data, weight), attrs)
