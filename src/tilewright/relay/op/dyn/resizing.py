"""Upsampling and resizing by factors or to sizes that the program computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import cast
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.attributes import OpAttrs
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, vector_size, whole_numbers
from tilewright.relay.op.image.resize import Resize2DAttrs
from tilewright.relay.op.nn.upsampling import UpSampling3DAttrs, UpSamplingAttrs
from tilewright.relay.op.shapes import dims, tensors
from tilewright.relay.op.transform.support import as_int64, require, result_shape, shape_program
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout
from tilewright.tir.op import floor


def _resized_type(data: TensorType, attrs: Any, letters: str, dtype: str) -> TensorType:
    """The data's type with the axes of these letters unknown."""
    layout = Layout(attrs.layout)
    if len(layout) != len(data.shape):
        raise RelationError(f"data of layout {attrs.layout} have {len(layout)} dimensions, not {data}")
    shape = list(dims(data))
    for letter in letters:
        if layout.index_of(letter) < 0 or layout.factor_of(letter) > 0:
            raise RelationError(f"the layout {attrs.layout} must have the axes {letters}, whole")
        shape[layout.index_of(letter)] = AnyDimension()
    return TensorType(shape, dtype)


Size = Callable[[Any, int, PrimExpr], PrimExpr]
"""(inputs of the shape function, number of the axis, its size) to the new size."""


def _shape_function(letters: str, name: str, size: Size) -> Callable[..., list[Tensor]]:
    def shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
        layout = Layout(attrs.layout)

        def program(builder: Any, ins: Any, outs: Any) -> None:
            for place in range(len(layout)):
                extent = builder.let("extent", as_int64(ins[0][place]))
                if layout[place] in letters:
                    require(builder, extent > 0, f"{name}: there are no pixels to read along {layout[place]}")
                    extent = builder.let("resized", size(ins, letters.index(layout[place]), extent))
                    require(builder, extent > 0, f"{name}: a dimension of the result is less than one")
                outs[0][place] = extent

        return shape_program(f"{name}_shape", inputs, [len(layout)], program)

    return shape


def _enlarged(inputs: Any, number: int, extent: PrimExpr) -> PrimExpr:
    """The size times its factor, rounded to the nearest."""
    return cast("int64", floor(cast("float64", extent) * cast("float64", inputs[1 + number][0]) + 0.5))


def _define_upsampling(
    name: str, letters: str, attrs_class: type[OpAttrs], compute: Callable[..., Tensor], last: str
) -> None:
    factors = tuple(f"scale_{letter.lower()}" for letter in letters)

    def relation(types: Sequence[Type], attrs: Any) -> Type | None:
        found = tensors(types, "the data", *factors)
        if found is None:
            return None
        data, *scales = found
        for factor, scale in zip(factors, scales, strict=True):
            if scale.shape:
                raise RelationError(f"{factor} is a scalar, not {scale}")
        return _resized_type(data, attrs, letters, data.dtype)

    def computed(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        settings = (attrs.layout, attrs.method, attrs[last])
        return [compute(inputs[0], *[1.0] * len(letters), *settings, result_shape(out_type))]

    def reference(attrs: Any, data: Any, *scales: Any) -> Any:
        given = {factor: float(scale) for factor, scale in zip(factors, scales, strict=True)}
        return reference_of(name, attrs.replace(**given), data)

    define(
        f"dyn.{name}",
        arguments=("data", *factors),
        attrs=attrs_class,
        relation=relation,
        compute=computed,
        reference=reference,
        kind=OpPattern.INJECTIVE,
        shape_function=_shape_function(letters, name.removeprefix("nn."), _enlarged),
        data_dependent=(False, *[True] * len(letters)),
        level=2,
        description="Images or volumes enlarged by factors that the program computes.",
    )


_define_upsampling("nn.upsampling", "HW", UpSamplingAttrs, topi.nn.upsampling, "align_corners")
_define_upsampling(
    "nn.upsampling3d", "DHW", UpSampling3DAttrs, topi.nn.upsampling3d, "coordinate_transformation_mode"
)


def _resize_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the data", "the size")
    if found is None:
        return None
    data, size = found
    if vector_size(size, "the size") != 2:
        raise RelationError(f"the size of resize2d is a height and a width, not {size}")
    return _resized_type(data, attrs, "HW", attrs.out_dtype or data.dtype)


def _resize_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    shape = result_shape(out_type)
    layout = Layout(attrs.layout)
    return [
        topi.image.resize2d(
            inputs[0],
            [shape[layout.index_of(letter)] for letter in "HW"],
            attrs.layout,
            attrs.method,
            attrs.coordinate_transformation_mode,
            attrs.rounding_method,
            attrs.cubic_alpha,
            attrs.cubic_exclude,
            attrs.out_dtype or None,
        )
    ]


define(
    "dyn.image.resize2d",
    arguments=("data", "size"),
    attrs=Resize2DAttrs,
    relation=_resize_relation,
    compute=_resize_compute,
    reference=lambda attrs, data, size: reference_of(
        "image.resize2d", attrs.replace(size=tuple(whole_numbers(size))), data
    ),
    kind=OpPattern.INJECTIVE,
    shape_function=_shape_function("HW", "resize2d", lambda ins, number, extent: as_int64(ins[1][number])),
    data_dependent=(False, True),
    level=5,
    description="Images resized to a size that the program computes.",
)
