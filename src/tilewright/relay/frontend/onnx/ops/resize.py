"""Resize and Upsample: every axis is resized separately.

If the sizes are known at import, so are the weights of each axis: a constant matrix, or a vector of indices for
nearest-neighbour. Plain images go to the operators of relay.image, which read only what they need. If a size is
unknown, the program computes the coordinates and the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import Extent, arange, check_constants, extents, scalar
from tilewright.relay.frontend.onnx.ops.resize_weights import HALF, Sampling, indices, weights
from tilewright.relay.frontend.onnx.registry import converter

_IMAGES = {3: relay.image.resize1d, 4: relay.image.resize2d, 5: relay.image.resize3d}
_IMAGE_MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


@dataclass
class Axis:
    """One axis that is resized: its place, its sizes, and the scale (None where the sizes say it)."""

    place: int
    source: Extent
    target: Extent
    scale: float | Expr | None
    region: tuple[float, float]

    @property
    def ratio(self) -> float:
        """The scale of an axis whose sizes are known."""
        assert isinstance(self.source, int) and isinstance(self.target, int)
        return self.target / self.source if not isinstance(self.scale, float) else self.scale

    @property
    def is_known(self) -> bool:
        """True if sizes and scale are known now."""
        return (
            isinstance(self.source, int) and isinstance(self.target, int) and not isinstance(self.scale, Expr)
        )

    @property
    def is_exact(self) -> bool:
        """True if the scale is what the sizes say."""
        return self.is_known and (self.scale is None or self.scale * self.source == self.target)


@converter("Upsample", since=7)
def upsample_by_attribute(node: Node, data: Expr) -> Expr:
    """Opset 7: scales are an attribute."""
    factors = [float(item) for item in node.attr("scales")]
    return _resize_by_factors(node, data, factors)


@converter("Upsample", since=9)
@converter("Resize", since=10)
def resize_by_scales(node: Node, data: Expr, scales: Expr) -> Expr:
    """Upsample, and Resize of opset 10."""
    factors = [float(item) for item in node.required_value(scales, "the scales").reshape(-1)]
    return _resize_by_factors(node, data, factors)


def _resize_by_factors(node: Node, data: Expr, factors: Sequence[float]) -> Expr:
    mode = str(node.attr("mode", "nearest"))
    if mode not in ("nearest", "linear", "bilinear"):
        raise node.fail(f"the mode {mode!r} is not known")
    if len(factors) != node.rank(data):
        raise node.fail(f"{len(factors)} scales are given for {node.rank(data)} axes")
    sizes = extents(node, data)
    axes = [
        Axis(place, size, _scaled(size, factor), factor, (0.0, 1.0))
        for place, (size, factor) in enumerate(zip(sizes, factors, strict=True))
        if factor != 1
    ]
    if mode != "nearest":
        return _resized(node, data, axes, Sampling(mode="linear", coordinates="asymmetric"))
    for axis in axes:
        # Before opset 11 an image that shrinks takes the next element, one that grows the one before.
        rounding = "ceil" if float(axis.scale) < 1 else "floor"  # type: ignore[arg-type]
        data = _resized(node, data, [axis], Sampling("nearest", "asymmetric", rounding))
    return data


@converter("Resize", since=11)
def resize(
    node: Node,
    data: Expr,
    region: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
) -> Expr:
    """Resize with all its ways to say where the elements of the result lie."""
    sampling = Sampling(
        mode=str(node.attr("mode", "nearest")),
        coordinates=str(node.attr("coordinate_transformation_mode", "half_pixel")),
        rounding=str(node.attr("nearest_mode", "round_prefer_floor")),
        cubic=float(node.attr("cubic_coeff_a", -0.75)),
        exclude_outside=bool(node.attr("exclude_outside", 0)),
        antialias=bool(node.attr("antialias", 0)),
        extrapolation=float(node.attr("extrapolation_value", 0.0)),
    )
    complaint = sampling.complaint()
    if complaint:
        raise node.fail(complaint)
    rank = node.rank(data)
    places = [int(place) % rank for place in node.attr("axes", None) or range(rank)]
    regions = _regions(node, region, sampling, len(places))
    if _count(node, scales):
        axes = _axes_by_scales(node, data, scales, places, regions)
    elif _count(node, sizes):
        axes = _axes_by_sizes(node, data, sizes, places, regions)
    else:
        raise node.fail("neither scales nor sizes are given")
    return _resized(node, data, axes, sampling)


def _count(node: Node, value: Expr | None) -> bool:
    """True if an optional input is there; exporters leave one out by making it empty."""
    return value is not None and node.shape(value) != (0,)


def _regions(node: Node, region: Expr | None, sampling: Sampling, count: int) -> list[tuple[float, float]]:
    if sampling.coordinates != "tf_crop_and_resize":
        return [(0.0, 1.0)] * count
    given = [float(item) for item in node.required_value(region, "the region").reshape(-1)]
    if len(given) != 2 * count:
        raise node.fail(f"the region has {len(given)} numbers for {count} axes")
    return list(zip(given[:count], given[count:], strict=True))


def _axes_by_scales(
    node: Node,
    data: Expr,
    scales: Expr | None,
    places: Sequence[int],
    regions: Sequence[tuple[float, float]],
) -> list[Axis]:
    known = node.value(scales)
    shape = extents(node, data)
    if known is None:
        assert scales is not None
        found = []
        for number, place in enumerate(places):
            factor = relay.take(relay.cast(scales, "float64"), const(number, "int64"), axis=0)
            size = scalar(shape[place])
            target = relay.cast(relay.cast(relay.cast(size, "float64") * factor, "float32"), "int64")
            found.append(Axis(place, shape[place], target, factor, regions[number]))
        return found
    factors = [float(item) for item in known.reshape(-1)]
    if len(factors) != len(places):
        raise node.fail(f"{len(factors)} scales are given for {len(places)} axes")
    if any(not factor > 0 for factor in factors):
        raise node.fail("scales are positive")
    return [
        Axis(place, shape[place], _scaled(shape[place], factor), factor, part)
        for place, factor, part in zip(places, factors, regions, strict=True)
        if factor != 1 or part != (0.0, 1.0)
    ]


def _scaled(size: Extent, factor: float) -> Extent:
    """The size of the result: scales are float32, and so is their product with a size."""
    if isinstance(size, int):
        return int(np.float32(size) * np.float32(factor))
    if factor == int(factor):
        return size * const(int(factor), "int64")
    scaled = relay.cast(size, "float64") * const(float(np.float32(factor)), "float64")
    return relay.cast(relay.cast(scaled, "float32"), "int64")


def _axes_by_sizes(
    node: Node,
    data: Expr,
    sizes: Expr | None,
    places: Sequence[int],
    regions: Sequence[tuple[float, float]],
) -> list[Axis]:
    assert sizes is not None
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    shape = extents(node, data)
    if policy != "stretch":
        return _axes_in_ratio(node, data, node.ints(sizes, "the sizes"), places, regions, policy)
    partial = node.partial(sizes)
    if partial is None or len(partial) != len(places):
        raise node.fail(f"the sizes are not {len(places)} numbers")
    found = []
    for number, (place, size) in enumerate(zip(places, partial, strict=True)):
        target: Extent = (
            size
            if size is not None
            else relay.take(relay.cast(sizes, "int64"), const(number, "int64"), axis=0)
        )
        if isinstance(target, int) and target == shape[place] and regions[number] == (0.0, 1.0):
            continue
        if (
            place < 2
            and size is None
            and len(places) == node.rank(data) > 2
            and node.shape(data)[place] is None
        ):
            # A size that exporters copy from the data: the batch and the channels of images are not resized.
            continue
        found.append(Axis(place, shape[place], target, None, regions[number]))
    return found


def _axes_in_ratio(
    node: Node,
    data: Expr,
    sizes: Sequence[int],
    places: Sequence[int],
    regions: Sequence[tuple[float, float]],
    policy: str,
) -> list[Axis]:
    """One scale for all axes: the smallest that the sizes imply, or the largest."""
    if policy not in ("not_larger", "not_smaller"):
        raise node.fail(f"the policy {policy!r} is not known")
    shape = node.static_shape(data)
    choose = min if policy == "not_larger" else max
    factor = choose(size / shape[place] for size, place in zip(sizes, places, strict=True))
    return [
        Axis(place, shape[place], int(factor * shape[place] + 0.5), factor, part)
        for place, part in zip(places, regions, strict=True)
    ]


# The axes, one by one


def _resized(node: Node, data: Expr, axes: Sequence[Axis], sampling: Sampling) -> Expr:
    if not axes:
        return data
    for axis in axes:
        if axis.source == 0 or axis.target == 0:
            raise node.fail(f"axis {axis.place} has no elements")
    if sampling.mode == "nearest":
        for axis in axes:
            data = _nearest(node, data, axis, sampling)
        return data
    dtype = node.dtype(data)
    wide = data if dtype in ("float32", "float64") else relay.cast(data, "float32")
    made = _interpolated(node, wide, axes, sampling)
    if node.dtype(made) == dtype:
        return made
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        made = relay.clip(relay.round(made), float(limits.min), float(limits.max))
    return relay.cast(made, dtype)


def _nearest(node: Node, data: Expr, axis: Axis, sampling: Sampling) -> Expr:
    if axis.is_known:
        assert isinstance(axis.source, int) and isinstance(axis.target, int)
        check_constants(node, axis.target)
        chosen, outside = indices(sampling, axis.source, axis.target, axis.ratio, axis.region)
        made = relay.take(data, const(chosen.astype("int64")), axis=axis.place)
        return _extrapolated(node, made, outside, axis.place, sampling)
    place = _places(node, axis, sampling)
    if sampling.rounding == "round_prefer_floor":
        place = relay.ceil(place - const(HALF, "float64"))
    elif sampling.rounding == "round_prefer_ceil":
        place = relay.floor(place + const(HALF, "float64"))
    else:
        place = relay.floor(place) if sampling.rounding == "floor" else relay.ceil(place)
    return relay.take(data, _within(place, axis), axis=axis.place)


def _interpolated(node: Node, data: Expr, axes: Sequence[Axis], sampling: Sampling) -> Expr:
    if _is_image(node, data, axes, sampling):
        shape = list(node.static_shape(data)[2:])
        for axis in axes:
            assert isinstance(axis.target, int)
            shape[axis.place - 2] = axis.target
        return _IMAGES[node.rank(data)](
            data,
            shape,
            method=sampling.mode,
            coordinate_transformation_mode=sampling.coordinates,
            cubic_alpha=sampling.cubic,
            cubic_exclude=int(sampling.exclude_outside),
        )
    for axis in axes:
        data = _by_matrix(node, data, axis, sampling) if axis.is_known else _open(node, data, axis, sampling)
    return data


def _is_image(node: Node, data: Expr, axes: Sequence[Axis], sampling: Sampling) -> bool:
    """True if relay.image resizes just so."""
    shape = node.shape(data)
    return (
        len(shape) in _IMAGES
        and None not in shape
        and all(axis.place >= 2 and axis.is_exact for axis in axes)
        and sampling.coordinates in _IMAGE_MODES
        and not sampling.antialias
        and not (sampling.coordinates == "pytorch_half_pixel" and any(axis.target == 1 for axis in axes))
        and (sampling.mode == "linear" or len(shape) < 5)
    )


def _by_matrix(node: Node, data: Expr, axis: Axis, sampling: Sampling) -> Expr:
    """The axis multiplied by the matrix of its weights."""
    assert isinstance(axis.source, int) and isinstance(axis.target, int)
    check_constants(node, axis.source, axis.target)
    matrix, outside = weights(sampling, axis.source, axis.target, axis.ratio, axis.region)
    rank = node.rank(data)
    last = [place for place in range(rank) if place != axis.place] + [axis.place]
    moved = data if axis.place == rank - 1 else relay.transpose(data, last)
    made: Expr = (
        relay.nn.dense(moved, node.constant(matrix, data))
        if rank > 1
        else relay.squeeze(relay.nn.dense(relay.expand_dims(moved, 0), node.constant(matrix, data)), axis=[0])
    )
    if axis.place != rank - 1:
        made = relay.transpose(made, [int(place) for place in np.argsort(last)])
    return _extrapolated(node, made, outside, axis.place, sampling)


def _extrapolated(node: Node, data: Expr, outside: np.ndarray, place: int, sampling: Sampling) -> Expr:
    if not outside.any():
        return data
    shape = [-1 if axis == place else 1 for axis in range(node.rank(data))]
    return relay.where(const(outside.reshape(shape)), node.constant(sampling.extrapolation, data), data)


# Sizes that the program computes


def _places(node: Node, axis: Axis, sampling: Sampling) -> Expr:
    """Where the elements of the result are in the data, in float64.

    For the nearest element the coordinate is rounded to float32 where ``single_places`` rounds it: a quotient of two
    float32 in double precision, rounded, is their quotient in float32, even by way of a reciprocal.
    """
    kind = "float64"

    def rounded(value: Expr) -> Expr:
        return relay.cast(relay.cast(value, "float32"), kind) if sampling.mode == "nearest" else value

    number = arange(axis.target, kind)
    source = relay.cast(scalar(axis.source), kind)
    target = relay.cast(scalar(axis.target), kind)
    scale = axis.scale if isinstance(axis.scale, Expr) else None
    if scale is None:
        scale = rounded(target / source) if axis.scale is None else const(axis.scale, kind)
    half, one = const(0.5, kind), const(1.0, kind)
    if sampling.coordinates == "asymmetric":
        return rounded(number / scale)
    if sampling.coordinates in ("half_pixel", "pytorch_half_pixel"):
        found = rounded(rounded((number + half) / scale) - half)
        if sampling.coordinates == "half_pixel":
            return found
        if sampling.mode == "nearest":
            return relay.where(relay.equal(target, one), number, found)
        return relay.where(relay.equal(scale * source, one), number - half, found)
    if sampling.coordinates == "align_corners":
        whole = relay.maximum(scale * source - one, const(1e-30, kind))
        if sampling.mode == "nearest":
            return rounded(rounded(number * (source - one)) / relay.maximum(target - one, one))
        return relay.where(
            relay.greater(scale * source, one), number * (source - one) / whole, number * const(0.0, kind)
        )
    raise node.needs_value(scalar(axis.target), f"the size that {sampling.coordinates} resizes to")


def _within(place: Expr, axis: Axis) -> Expr:
    """Indices brought to where there are elements."""
    last = scalar(axis.source) - const(1, "int64")
    return relay.minimum(relay.maximum(relay.cast(place, "int64"), const(0, "int64")), last)


def _open(node: Node, data: Expr, axis: Axis, sampling: Sampling) -> Expr:
    """Neighbours weighted by how near they are."""
    if sampling.mode not in ("linear", "cubic") or sampling.antialias:
        raise node.needs_value(scalar(axis.target), f"the size that {sampling.mode} interpolation resizes to")
    place = _places(node, axis, sampling)
    low = relay.floor(place)
    shares = _WEIGHTS[sampling.mode](place - low, sampling.cubic)
    first = 1 - len(shares) // 2
    taps = [low + const(float(first + count), "float64") for count in range(len(shares))]
    if sampling.exclude_outside:
        shares = _without_outside(shares, taps, axis)
    shape = [1] * node.rank(data)
    shape[axis.place] = -1
    made: Expr | None = None
    for tap, share in zip(taps, shares, strict=True):
        factor = relay.reshape(relay.cast(share, node.dtype(data)), shape)
        term = relay.take(data, _within(tap, axis), axis=axis.place) * factor
        made = term if made is None else made + term
    assert made is not None
    return made


def _linear_weights(part: Expr, alpha: float) -> list[Expr]:
    """The weights of the neighbours of a place that is a part of a step behind the first."""
    return [const(1.0, "float64") - part, part]


def _cubic_weights(part: Expr, alpha: float) -> list[Expr]:
    """The same for two neighbours on each side: near ones by one polynomial, far ones by another."""

    def polynomial(distance: Expr, *factors: float) -> Expr:
        made: Expr = const(factors[0], "float64")
        for factor in factors[1:]:
            made = made * distance + const(factor, "float64")
        return made

    one, two = const(1.0, "float64"), const(2.0, "float64")
    near, far = (alpha + 2, -(alpha + 3), 0.0, 1.0), (alpha, -5 * alpha, 8 * alpha, -4 * alpha)
    return [
        polynomial(part + one, *far),
        polynomial(part, *near),
        polynomial(one - part, *near),
        polynomial(two - part, *far),
    ]


_WEIGHTS: Final[dict[str, Callable[[Expr, float], list[Expr]]]] = {
    "linear": _linear_weights,
    "cubic": _cubic_weights,
}


def _without_outside(shares: list[Expr], taps: Sequence[Expr], axis: Axis) -> list[Expr]:
    """The weights of neighbours that there are; the others are zero, and the sum is one."""
    size = relay.cast(scalar(axis.source), "float64")
    zero = const(0.0, "float64")
    inside = [
        relay.where(relay.logical_and(relay.greater_equal(tap, zero), relay.less(tap, size)), share, zero)
        for tap, share in zip(taps, shares, strict=True)
    ]
    total = inside[0]
    for share in inside[1:]:
        total = total + share
    return [share / total for share in inside]
