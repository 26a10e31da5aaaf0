"""Images resized: nearest neighbour, linear and cubic, over one to three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, tir
from tilewright.ir.operators import as_expr, maximum, minimum
from tilewright.support.errors import OpAttributeInvalid
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.image.coordinates import (
    MODES,
    ROUNDING,
    Coordinate,
    coordinate,
    coordinate_in_region,
)
from tilewright.topi.nn.utils import per_axis, spatial_axes
from tilewright.topi.utils import InvalidShapeError, get_const_tuple

_METHODS = {
    "nearest_neighbor": "nearest",
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


class Interpolation:
    """A way to read between pixels."""

    def __init__(
        self, method: str, rounding: str, alpha: float = -0.5, exclude: bool = False, dtype: str = "float32"
    ) -> None:
        if method not in _METHODS:
            raise OpAttributeInvalid(f"an interpolation is one of {', '.join(_METHODS)}, not {method!r}")
        if rounding not in ROUNDING:
            raise OpAttributeInvalid(f"a rounding method is one of {', '.join(ROUNDING)}, not {rounding!r}")
        self.kind = _METHODS[method]
        self.rounding = rounding
        self.alpha = alpha
        self.exclude = exclude
        self.dtype = dtype

    def taps(self, position: Coordinate, size: Any) -> list[tuple[Any, Any]]:
        """The indices to read along an axis, inside of it, and their weights; a weight of None is one."""
        if self.kind == "nearest":
            return [(_clip(position.nearest(self.rounding), size), None)]
        low, part = position.floor(), position.fraction(self.dtype)
        one = tir.const(1, self.dtype)
        if self.kind == "linear":
            return [(_clip(low, size), one - part), (_clip(low + 1, size), part)]
        indices = [low + offset for offset in (-1, 0, 1, 2)]
        weights = self.cubic_weights(part)
        if self.exclude:
            zero = tir.const(0, self.dtype)
            weights = [
                tir.Select(tir.all(index >= 0, index < size), weight, zero)
                for index, weight in zip(indices, weights, strict=True)
            ]
            total = weights[0] + weights[1] + weights[2] + weights[3]
            weights = [weight / total for weight in weights]
        return [(_clip(index, size), weight) for index, weight in zip(indices, weights, strict=True)]

    def cubic_weights(self, part: Any) -> list[Any]:
        """The weights of four neighbours, by Keys' cubic with parameter alpha, in powers of ``part``."""
        a = self.alpha

        def polynomial(*coefficients: float) -> Any:
            value = tir.const(coefficients[0], self.dtype)
            for coefficient in coefficients[1:]:
                value = value * part + tir.const(coefficient, self.dtype)
            return value

        return [
            polynomial(a, -2 * a, a, 0),
            polynomial(a + 2, -(a + 3), 0, 1),
            polynomial(-(a + 2), 2 * a + 3, -a, 0),
            polynomial(-a, a, 0, 0),
        ]


def _clip(index: Any, size: Any) -> Any:
    return minimum(maximum(index, 0), size - 1)


def interpolate(data: Tensor, at: Sequence[Any], taps: Sequence[tuple[int, list[tuple[Any, Any]]]]) -> Any:
    """The weighted sum of the elements at ``at``, with some axes replaced by their taps; axes are (position, taps)."""
    if not taps:
        return data(*at)
    (axis, choices), *rest = taps
    total = None
    for index, weight in choices:
        value = interpolate(data, [*at[:axis], index, *at[axis + 1 :]], rest)
        if weight is not None:
            value = value.astype(weight.dtype) * weight
        total = value if total is None else total + value
    return total


def _resize(
    data: Tensor,
    size: Any,
    layout: str,
    letters: str,
    method: str,
    mode: str,
    rounding_method: str,
    alpha: float,
    exclude: Any,
    out_dtype: str | None,
    output_shape: Any,
    roi: Any,
    extrapolation_value: float,
) -> Tensor:
    if mode not in MODES:
        raise OpAttributeInvalid(f"a coordinate transformation is one of {', '.join(MODES)}, not {mode!r}")
    axes = spatial_axes(layout, len(data.shape), letters)
    if output_shape is not None:
        size = [output_shape[axis] for axis in axes]
    sizes = per_axis(size, len(axes), "size")
    shape = list(data.shape)
    for axis, extent in zip(axes, sizes, strict=True):
        shape[axis] = as_expr(extent)
    kind = data.dtype if data.dtype == "float64" else "float32"
    rounding = rounding_method or ("round" if mode == "align_corners" else "floor")
    way = Interpolation(method, rounding, alpha, bool(exclude), kind)
    result = out_dtype or data.dtype
    region = _region(roi, axes, len(data.shape)) if mode == "tf_crop_and_resize" else None

    def position(number: int, index: Any) -> Coordinate:
        extent, target = data.shape[axes[number]], sizes[number]
        if region is None:
            return coordinate(index, extent, target, mode)
        return coordinate_in_region(index, extent, target, *region[number])

    def element(*indices: Any) -> Any:
        positions = [position(number, indices[axis]) for number, axis in enumerate(axes)]
        taps = [
            (axis, way.taps(place, data.shape[axis])) for axis, place in zip(axes, positions, strict=True)
        ]
        value = interpolate(data, indices, taps).astype(result)
        if region is None:
            return value
        outside = [place.outside(data.shape[axis]) for axis, place in zip(axes, positions, strict=True)]
        return tir.if_then_else(tir.any(*outside), tir.const(extrapolation_value, result), value)

    made: Tensor = te.compute(shape, element, name="resize", tag=tag.INJECTIVE)
    return made


def _region(roi: Any, axes: list[int], rank: int) -> list[tuple[Any, Any]]:
    """The begin and end of each resized axis, as parts of its extent.

    ``roi`` has the begins and then the ends, of the resized axes or of all; a tensor or numbers.
    """
    count = len(axes)
    if roi is None:
        raise OpAttributeInvalid('the mode "tf_crop_and_resize" needs a roi')
    if isinstance(roi, Tensor):
        (length,) = get_const_tuple(roi.shape)
        values = [roi(index) for index in range(length)]
    else:
        values = [tir.const(float(value), "float32") for value in roi]
    if len(values) == 2 * rank:
        return [(values[axis], values[rank + axis]) for axis in axes]
    if len(values) != 2 * count:
        raise InvalidShapeError(f"a roi has {2 * count} or {2 * rank} values, not {len(values)}")
    return [(values[number], values[count + number]) for number in range(count)]


def resize1d(
    data: Tensor,
    size: Any,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: Any = 0,
    out_dtype: str | None = None,
    output_shape: Any = None,
    roi: Any = None,
    extrapolation_value: float = 0.0,
) -> Tensor:
    """A signal resized along W; see ``resize2d``."""
    return _resize(
        data,
        size,
        layout,
        "W",
        method,
        coordinate_transformation_mode,
        rounding_method,
        bicubic_alpha,
        bicubic_exclude,
        out_dtype,
        output_shape,
        roi,
        extrapolation_value,
    )


def resize2d(
    data: Tensor,
    size: Any,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: Any = 0,
    out_dtype: str | None = None,
    output_shape: Any = None,
    roi: Any = None,
    extrapolation_value: float = 0.0,
) -> Tensor:
    """An image resized along H and W: method nearest_neighbor, linear or cubic.

    Reads beyond the edge read the edge; with ``bicubic_exclude`` they weigh nothing. Without a rounding method, the
    nearest neighbour is rounded for align_corners and the one below otherwise. The mode tf_crop_and_resize reads the
    part ``roi`` of the input, and gives ``extrapolation_value`` outside of it.
    """
    return _resize(
        data,
        size,
        layout,
        "HW",
        method,
        coordinate_transformation_mode,
        rounding_method,
        bicubic_alpha,
        bicubic_exclude,
        out_dtype,
        output_shape,
        roi,
        extrapolation_value,
    )


def resize3d(
    data: Tensor,
    size: Any,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: Any = 0,
    out_dtype: str | None = None,
    output_shape: Any = None,
    roi: Any = None,
    extrapolation_value: float = 0.0,
) -> Tensor:
    """A volume resized along D, H and W; see ``resize2d``."""
    return _resize(
        data,
        size,
        layout,
        "DHW",
        method,
        coordinate_transformation_mode,
        rounding_method,
        bicubic_alpha,
        bicubic_exclude,
        out_dtype,
        output_shape,
        roi,
        extrapolation_value,
    )


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Any,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Tensor:
    """Boxes cropped from images and resized to ``crop_size``; a box is (y1, x1, y2, x2) in 0 to 1.

    ``box_indices`` tells which image a box belongs to. Outside of the image, and of an image that does not exist, a
    crop is ``extrapolation_value``.
    """
    axes = spatial_axes(layout, len(data.shape), "HW")
    (batch_axis,) = spatial_axes(layout, len(data.shape), "N")
    sizes = per_axis(crop_size, 2, "crop_size")
    shape = list(data.shape)
    shape[batch_axis] = boxes.shape[0]
    for axis, extent in zip(axes, sizes, strict=True):
        shape[axis] = as_expr(extent)
    kind = data.dtype if data.dtype == "float64" else "float32"
    way = Interpolation(method, "round", dtype=kind)
    result = out_dtype or data.dtype

    def element(*indices: Any) -> Any:
        box = indices[batch_axis]
        positions = [
            coordinate_in_region(
                indices[axis], data.shape[axis], sizes[number], boxes(box, number), boxes(box, number + 2)
            )
            for number, axis in enumerate(axes)
        ]
        at = list(indices)
        at[batch_axis] = box_indices(box)
        taps = [
            (axis, way.taps(place, data.shape[axis])) for axis, place in zip(axes, positions, strict=True)
        ]
        value = interpolate(data, at, taps).astype(result)
        outside = [place.outside(data.shape[axis]) for axis, place in zip(axes, positions, strict=True)]
        outside += [at[batch_axis] < 0, at[batch_axis] >= data.shape[batch_axis]]
        return tir.if_then_else(tir.any(*outside), tir.const(extrapolation_value, result), value)

    made: Tensor = te.compute(shape, element, name="crop_and_resize", tag=tag.INJECTIVE)
    return made
