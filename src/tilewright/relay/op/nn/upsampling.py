"""Upsampling images and volumes by a factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import tir, topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, Relation, define
from tilewright.relay.op.image.resize_reference import resized
from tilewright.relay.op.nn.layout_conversion import spatial_layouts, whole_extents
from tilewright.relay.op.op import register_convert_op_layout
from tilewright.relay.op.shapes import Dimension, combine, dims, tensor
from tilewright.tir.data_layout import Layout


@attributes
class UpSamplingAttrs(OpAttrs):
    """upsampling: the factors, and how to read between pixels."""

    scale_h: float = 1.0
    scale_w: float = 1.0
    layout: str = "NCHW"
    method: str = "nearest_neighbor"
    align_corners: bool = False


@attributes
class UpSampling3DAttrs(OpAttrs):
    """upsampling3d: the factors, and how to read between pixels."""

    scale_d: float = 1.0
    scale_h: float = 1.0
    scale_w: float = 1.0
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"


def scaled(extent: Dimension, scale: float) -> Dimension:
    """A dimension times a factor, rounded to the nearest."""
    if float(scale).is_integer():
        return combine(lambda size: size * int(scale), extent)
    if isinstance(extent, int):
        return int(extent * scale + 0.5)
    return combine(lambda size: tir.round(size.astype("float32") * scale).astype(size.dtype), extent)


def enlarged_relation(letters: str) -> Relation:
    """Each spatial axis times its factor."""

    def enlarged(types: Sequence[Type], attrs: Any) -> Type | None:
        data = tensor(types[0], "the data")
        if data is None:
            return None
        layout = Layout(attrs.layout)
        whole_extents(dims(data), attrs.layout, "".join(layout.primal_axes()), "the data")
        shape = list(dims(data))
        for axis in letters:
            place = layout.index_of(axis)
            shape[place] = scaled(shape[place], getattr(attrs, f"scale_{axis.lower()}"))
        return TensorType(shape, data.dtype)

    return enlarged


def _enlarged(data: Any, attrs: Any, letters: str, mode: str) -> Any:
    layout = Layout(attrs.layout)
    axes = [layout.index_of(axis) for axis in letters]
    sizes = [
        scaled(data.shape[place], getattr(attrs, f"scale_{axis.lower()}"))
        for place, axis in zip(axes, letters, strict=True)
    ]
    return resized(data, axes, sizes, attrs.method, mode)


UPSAMPLING = define(
    "nn.upsampling",
    arguments=("data",),
    attrs=UpSamplingAttrs,
    relation=enlarged_relation("HW"),
    compute=lambda attrs, inputs, out_type: [
        topi.nn.upsampling(
            inputs[0], attrs.scale_h, attrs.scale_w, attrs.layout, attrs.method, attrs.align_corners
        )
    ],
    reference=lambda attrs, data: _enlarged(
        data, attrs, "HW", "align_corners" if attrs.align_corners else "asymmetric"
    ),
    layout=spatial_layouts,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="Images enlarged by a factor.",
)

UPSAMPLING3D = define(
    "nn.upsampling3d",
    arguments=("data",),
    attrs=UpSampling3DAttrs,
    relation=enlarged_relation("DHW"),
    compute=lambda attrs, inputs, out_type: [
        topi.nn.upsampling3d(
            inputs[0],
            attrs.scale_d,
            attrs.scale_h,
            attrs.scale_w,
            attrs.layout,
            attrs.method,
            attrs.coordinate_transformation_mode,
        )
    ],
    reference=lambda attrs, data: _enlarged(data, attrs, "DHW", attrs.coordinate_transformation_mode),
    layout=spatial_layouts,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="Volumes enlarged by a factor.",
)


def _convert(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], desired_layouts: Sequence[str]
) -> RelayExpr:
    layout = str(desired_layouts[0])
    op = UPSAMPLING if isinstance(attrs, UpSamplingAttrs) else UPSAMPLING3D
    return Call(op, inputs, attrs if layout == "default" else attrs.replace(layout=layout))


for _op in (UPSAMPLING, UPSAMPLING3D):
    register_convert_op_layout(_op.name, _convert)


def _factors(*scales: Any) -> list[Any]:
    """Factors as numbers where they are constants."""
    return [scale.data.numpy().item() if isinstance(scale, Constant) else scale for scale in scales]


def _as_expressions(scales: Sequence[Any]) -> list[RelayExpr]:
    return [scale if isinstance(scale, RelayExpr) else const(float(scale), "float64") for scale in scales]


def upsampling(
    data: RelayExpr,
    scale_h: Any = 1,
    scale_w: Any = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Call:
    """``data`` enlarged by factors, which may be expressions: nearest_neighbor, bilinear or bicubic."""
    scales = _factors(scale_h, scale_w)
    if any(isinstance(scale, RelayExpr) for scale in scales):
        return call(
            "dyn.nn.upsampling",
            data,
            *_as_expressions(scales),
            layout=layout,
            method=method,
            align_corners=align_corners,
        )
    return Call(UPSAMPLING, (data,), UpSamplingAttrs(scales[0], scales[1], layout, method, align_corners))


def upsampling3d(
    data: RelayExpr,
    scale_d: Any = 1,
    scale_h: Any = 1,
    scale_w: Any = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Call:
    """``data`` enlarged by factors, which may be expressions: nearest_neighbor or trilinear."""
    scales = _factors(scale_d, scale_h, scale_w)
    if any(isinstance(scale, RelayExpr) for scale in scales):
        return call(
            "dyn.nn.upsampling3d",
            data,
            *_as_expressions(scales),
            layout=layout,
            method=method,
            coordinate_transformation_mode=coordinate_transformation_mode,
        )
    attrs = UpSampling3DAttrs(scales[0], scales[1], scales[2], layout, method, coordinate_transformation_mode)
    return Call(UPSAMPLING3D, (data,), attrs)
