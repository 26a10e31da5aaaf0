"""Resizing images, and cropping and resizing boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, Relation, RelationError, define
from tilewright.relay.op.image.resize_reference import resized
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.op.nn.layout_conversion import spatial_layouts, whole_extents
from tilewright.relay.op.nn.windows import per_axis
from tilewright.relay.op.op import register_convert_op_layout
from tilewright.relay.op.shapes import dims, require_source, same, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout


@attributes
class Resize1DAttrs(OpAttrs):
    """resize1d; see ``Resize2DAttrs``."""

    size: Any = ()
    layout: str = "NCW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    out_dtype: str = ""


@attributes
class Resize2DAttrs(OpAttrs):
    """resize2d: the new size, how to read between pixels, and where the pixels of the result are in the input."""

    size: Any = ()
    layout: str = "NCHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    out_dtype: str = ""


@attributes
class Resize3DAttrs(OpAttrs):
    """resize3d; see ``Resize2DAttrs``."""

    size: Any = ()
    layout: str = "NCDHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    out_dtype: str = ""


@attributes
class CropAndResizeAttrs(OpAttrs):
    """crop_and_resize: the size of a crop, how to read between pixels, and what is outside the image."""

    crop_size: Any = ()
    layout: str = "NCHW"
    method: str = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: str = ""


_COMPUTES: dict[str, Callable[..., Tensor]] = {
    "W": topi.image.resize1d,
    "HW": topi.image.resize2d,
    "DHW": topi.image.resize3d,
}


def resize_relation(space: str) -> Relation:
    """The spatial axes replaced by the new size."""

    def resize(types: Sequence[Type], attrs: Any) -> Type | None:
        data = tensor(types[0], "the data")
        if data is None:
            return None
        layout = Layout(attrs.layout)
        whole_extents(dims(data), attrs.layout, "".join(layout.primal_axes()), "the data")
        if any(layout.index_of(axis) < 0 or layout.factor_of(axis) > 0 for axis in space):
            raise RelationError(f"the layout {attrs.layout} must have the axes {space}, whole")
        shape = list(dims(data))
        for axis, size in zip(space, per_axis(attrs.size, len(space), "size"), strict=True):
            shape[layout.index_of(axis)] = size
        read = [dims(data)[layout.index_of(axis)] for axis in space]
        require_source(read, shape, f"resize{len(space)}d: there are no pixels in {data} to read")
        return TensorType(shape, attrs.out_dtype or data.dtype)

    return resize


def _define_resize(space: str, attrs: type[Any]) -> Op:
    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        return [
            _COMPUTES[space](
                inputs[0],
                attrs.size,
                attrs.layout,
                attrs.method,
                attrs.coordinate_transformation_mode,
                attrs.rounding_method,
                attrs.cubic_alpha,
                attrs.cubic_exclude,
                attrs.out_dtype or None,
            )
        ]

    def reference(attrs: Any, data: Any) -> Any:
        layout = Layout(attrs.layout)
        return resized(
            data,
            [layout.index_of(axis) for axis in space],
            per_axis(attrs.size, len(space), "size"),
            attrs.method,
            attrs.coordinate_transformation_mode,
            attrs.rounding_method,
            attrs.cubic_alpha,
            bool(attrs.cubic_exclude),
            numpy_dtype(DataType(attrs.out_dtype)) if attrs.out_dtype else None,
        )

    op = define(
        f"image.resize{len(space)}d",
        arguments=("data",),
        attrs=attrs,
        relation=resize_relation(space),
        compute=compute,
        reference=reference,
        layout=spatial_layouts,
        kind=OpPattern.INJECTIVE,
        level=5,
        description="Images resized.",
    )

    def convert(
        attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], desired_layouts: Sequence[str]
    ) -> RelayExpr:
        layout = str(desired_layouts[0])
        return Call(op, inputs, attrs if layout == "default" else attrs.replace(layout=layout))

    register_convert_op_layout(op.name, convert)
    return op


RESIZE1D = _define_resize("W", Resize1DAttrs)
RESIZE2D = _define_resize("HW", Resize2DAttrs)
RESIZE3D = _define_resize("DHW", Resize3DAttrs)


def _sizes(size: Any, count: int) -> tuple[Any, ...]:
    if isinstance(size, Constant):
        size = [int(extent) for extent in size.data.numpy().reshape(-1)]
    return per_axis(size, count, "size")


def resize1d(
    data: RelayExpr,
    size: Any,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    out_dtype: str | None = None,
) -> Call:
    """A signal resized; see ``resize2d``."""
    attrs = Resize1DAttrs(
        _sizes(size, 1),
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        out_dtype or "",
    )
    return Call(RESIZE1D, (data,), attrs)


def resize2d(
    data: RelayExpr,
    size: Any,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    out_dtype: str | None = None,
) -> Call:
    """An image resized to ``size`` (height, width), which may be an expression: nearest_neighbor, linear or cubic.

    ``coordinate_transformation_mode`` is half_pixel, align_corners, asymmetric, pytorch_half_pixel or
    tf_half_pixel_for_nn; ``rounding_method`` of the nearest neighbour round, round_prefer_floor, round_prefer_ceil,
    floor or ceil.
    """
    if isinstance(size, RelayExpr) and not isinstance(size, Constant):
        return call(
            "dyn.image.resize2d",
            data,
            size,
            layout=layout,
            method=method,
            coordinate_transformation_mode=coordinate_transformation_mode,
            rounding_method=rounding_method,
            cubic_alpha=cubic_alpha,
            cubic_exclude=cubic_exclude,
            out_dtype=out_dtype or "",
        )
    attrs = Resize2DAttrs(
        _sizes(size, 2),
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        out_dtype or "",
    )
    return Call(RESIZE2D, (data,), attrs)


def resize3d(
    data: RelayExpr,
    size: Any,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    out_dtype: str | None = None,
) -> Call:
    """A volume resized; see ``resize2d``."""
    attrs = Resize3DAttrs(
        _sizes(size, 3),
        layout,
        method,
        coordinate_transformation_mode,
        rounding_method,
        cubic_alpha,
        cubic_exclude,
        out_dtype or "",
    )
    return Call(RESIZE3D, (data,), attrs)


# Crops


def crop_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """One image of the crop's size for each box."""
    data, boxes, indices = (
        tensor(types[0], "the data"),
        tensor(types[1], "the boxes"),
        tensor(types[2], "the indices of boxes"),
    )
    if data is None or boxes is None or indices is None:
        return None
    layout = Layout(attrs.layout)
    whole_extents(dims(data), attrs.layout, "".join(layout.primal_axes()), "the data")
    if len(boxes.shape) != 2 or len(indices.shape) != 1:
        raise RelationError("boxes are (boxes, 4), and their indices a vector")
    same(dims(boxes)[1], 4, "the sides of a box")
    shape = list(dims(data))
    shape[layout.index_of("N")] = same(dims(boxes)[0], dims(indices)[0], "the boxes, and their indices")
    for axis, size in zip("HW", per_axis(attrs.crop_size, 2, "crop_size"), strict=True):
        shape[layout.index_of(axis)] = size
    read = [dims(data)[layout.index_of(axis)] for axis in "NHW"]
    require_source(read, shape, f"crop_and_resize: there are no pixels in {data} to read")
    return TensorType(shape, attrs.out_dtype or data.dtype)


def _places(begin: float, end: float, size: int, target: int) -> Any:
    """Where the pixels of a crop are along an axis of the image."""
    if target == 1:
        return np.array([0.5 * (begin + end) * (size - 1)])
    return begin * (size - 1) + np.arange(target) * ((end - begin) * (size - 1) / (target - 1))


def _read_matrix(places: Any, size: int, nearest: bool) -> Any:
    matrix = np.zeros((len(places), size))
    rows = np.arange(len(places))
    if nearest:
        chosen = np.sign(places) * np.floor(np.abs(places) + 0.5)
        matrix[rows, np.clip(chosen.astype(int), 0, size - 1)] = 1
        return matrix
    low = np.floor(places)
    part = places - low
    for offset, weight in ((0, 1 - part), (1, part)):
        np.add.at(matrix, (rows, np.clip(low.astype(int) + offset, 0, size - 1)), weight)
    return matrix


def _crop_reference(attrs: Any, data: Any, boxes: Any, indices: Any) -> Any:
    layout = Layout(attrs.layout)
    order = [layout.index_of(axis) for axis in "NHW"]
    rest = [place for place in range(data.ndim) if place not in order]
    images = data.transpose(*order, *rest).astype(np.float64)
    height, width = images.shape[1:3]
    sizes = per_axis(attrs.crop_size, 2, "crop_size")
    nearest = attrs.method in ("nearest_neighbor", "nearest")
    crops = []
    for (top, left, bottom, right), item in zip(boxes, indices, strict=True):
        rows, columns = _places(top, bottom, height, sizes[0]), _places(left, right, width, sizes[1])
        read = np.tensordot(_read_matrix(rows, height, nearest), images[item], axes=(1, 0))
        made = np.tensordot(_read_matrix(columns, width, nearest), read, axes=(1, 1)).swapaxes(0, 1)
        made[(rows < 0) | (rows > height - 1)] = attrs.extrapolation_value
        made[:, (columns < 0) | (columns > width - 1)] = attrs.extrapolation_value
        crops.append(made)
    whole = np.stack(crops) if crops else np.zeros((0, *sizes, *images.shape[3:]))
    back = np.argsort([*order, *rest])
    kind = numpy_dtype(DataType(attrs.out_dtype)) if attrs.out_dtype else data.dtype
    return whole.transpose(*back).astype(kind)


def _crop_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    one = spatial_layouts(attrs, offered[:1], original[:1], types)
    return Layouts((*one.inputs, *original[1:]), one.outputs, one.attrs)


CROP_AND_RESIZE = define(
    "image.crop_and_resize",
    arguments=("data", "boxes", "box_indices"),
    attrs=CropAndResizeAttrs,
    relation=crop_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.image.crop_and_resize(
            inputs[0],
            inputs[1],
            inputs[2],
            attrs.crop_size,
            attrs.layout,
            attrs.method,
            attrs.extrapolation_value,
            attrs.out_dtype or None,
        )
    ],
    reference=_crop_reference,
    layout=_crop_layouts,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="Boxes cut out of images and resized.",
)


def crop_and_resize(
    data: RelayExpr,
    boxes: RelayExpr,
    box_indices: RelayExpr,
    crop_size: Any,
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Call:
    """Boxes (top, left, bottom, right in 0 to 1) cut out of the images that ``box_indices`` say, and resized; outside
    of the image a crop is ``extrapolation_value``."""
    attrs = CropAndResizeAttrs(_sizes(crop_size, 2), layout, method, extrapolation_value, out_dtype or "")
    return Call(CROP_AND_RESIZE, (data, boxes, box_indices), attrs)
