"""Images and signals in another size, as PyTorch computes them.

Where a scale is given, the places of the result follow from it, and not from the sizes: these differ where the scale
times a size is not a whole number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import (
    Size,
    all_known,
    known_or_none,
    reshaped,
    size_of,
    sizes_of,
    vector,
    with_known,
)
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.registry import converter

Array = np.ndarray[Any, Any]
_RESIZE: Final = {1: relay.image.resize1d, 2: relay.image.resize2d, 3: relay.image.resize3d}
_LAYOUTS: Final = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_CUBIC: Final = -0.75


def _targets(node: TorchNode, data: Expr, sizes: Any, scales: Any, rank: int) -> list[Size]:
    """The size of each axis of the result."""
    if sizes is not None:
        given = [sizes] * rank if not isinstance(sizes, (list, tuple)) else list(sizes)
        return given * rank if len(given) == 1 and rank > 1 else given
    found: list[Size] = []
    for place, scale in enumerate(scales):
        size = size_of(node, data, 2 + place)
        if isinstance(size, int):
            found.append(int(size * float(scale)))
        elif float(scale) == int(scale):
            found.append(relay.multiply(size, const(int(scale), "int64")))
        else:
            product = relay.multiply(relay.cast(size, "float64"), const(float(scale), "float64"))
            found.append(relay.cast(product, "int64"))
    return found


def _ratio(size: int, target: int, scale: float | None) -> float:
    """Elements of the source for one of the result."""
    return 1.0 / scale if scale is not None and scale > 0 else size / target


def _is_plain(size: Size, target: Size, scale: float | None, align_corners: bool) -> bool:
    """True if the places of the result follow from the two sizes."""
    if scale is None or align_corners or not isinstance(size, int) or not isinstance(target, int):
        return True
    return size * scale == target


def times_matrix(node: TorchNode, data: Expr, axis: int, matrix: Array) -> Expr:
    """An axis multiplied by a matrix of weights (target, source)."""
    rank = node.rank(data)
    order = [*(one for one in range(rank) if one != axis), axis]
    back = [order.index(one) for one in range(rank)]
    moved = relay.transpose(data, order)
    sizes = sizes_of(node, moved)
    flat = reshaped(node, moved, [-1, matrix.shape[1]])
    made = relay.nn.dense(flat, node.constant(matrix, data))
    return relay.transpose(reshaped(node, made, [*sizes[:-1], matrix.shape[0]]), back)


def _weights(
    size: int, target: int, scale: float | None, align_corners: bool, cubic: bool, antialias: bool = False
) -> Array:
    """The weight of each element of the source in each of the result."""
    number = np.arange(target, dtype=np.float64)
    if align_corners:
        ratio = (size - 1) / (target - 1) if target > 1 else 0.0
    else:
        ratio = _ratio(size, target, scale)
    if align_corners and not antialias:
        place = number * ratio
    else:
        # Kernels of antialiased resizing lie around the middles of pixels, whatever corners are aligned.
        place = (number + 0.5) * ratio - 0.5
        if not cubic and not antialias:
            place = np.maximum(place, 0.0)
    stretch = max(ratio, 1.0) if antialias else 1.0
    reach = int(np.ceil((2 if cubic else 1) * stretch)) + 1
    taps = np.floor(place).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    distance = np.abs(taps - place[:, None]) / stretch
    if cubic:
        a = -0.5 if antialias else _CUBIC
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        given = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    else:
        given = np.maximum(1 - distance, 0.0)
    if antialias:
        given = np.where((taps < 0) | (taps >= size), 0.0, given)
        given = given / given.sum(axis=1, keepdims=True)
    matrix = np.zeros((target, size))
    rows = np.broadcast_to(np.arange(target)[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, size - 1)), given)
    return matrix


def _interpolated(
    node: TorchNode,
    data: Expr,
    targets: list[Size],
    scales: Sequence[float | None],
    align_corners: bool,
    cubic: bool,
) -> Expr:
    rank = len(targets)
    sizes = sizes_of(node, data)[2:]
    plain = all(
        _is_plain(size, target, scale, align_corners)
        for size, target, scale in zip(sizes, targets, scales, strict=True)
    )
    if plain:
        coordinates = "align_corners" if align_corners else "half_pixel"
        method = "cubic" if cubic else "linear"
        return _resized(node, data, targets, method, coordinates)
    made = data
    for place in range(rank):
        size, target = sizes[place], targets[place]
        assert isinstance(size, int) and isinstance(target, int)
        made = times_matrix(
            node, made, 2 + place, _weights(size, target, scales[place], align_corners, cubic)
        )
    return made


def _resized(
    node: TorchNode, data: Expr, targets: list[Size], method: str, coordinates: str, rounding: str = ""
) -> Expr:
    rank = len(targets)
    if tuple(targets) == node.shape(data)[2:] and method != "cubic":
        return data
    settings: dict[str, Any] = {
        "layout": _LAYOUTS[rank],
        "method": method,
        "coordinate_transformation_mode": coordinates,
        "rounding_method": rounding,
        "cubic_alpha": _CUBIC,
    }
    if all_known(targets):
        made: Expr = _RESIZE[rank](data, tuple(targets), **settings)
        return made
    if rank != 2:
        raise node.fail("only images of two axes can have a size that is computed when the model runs")
    dynamic = relay.image.resize2d(data, vector(targets), **settings)
    return with_known(node, dynamic, [*node.shape(data)[:2], *known_or_none(targets)])


def _nearest_places(size: int, target: int, scale: float | None, exact: bool) -> Array:
    """The nearest elements, in the single precision that decides in PyTorch."""
    ratio = np.float32(_ratio(size, target, scale))
    number = np.arange(target).astype(np.float32)
    place = (number + np.float32(0.5)) * ratio if exact else number * ratio
    found: Array = np.minimum(np.floor(place).astype(np.int64), size - 1)
    return found


def _nearest(
    node: TorchNode, data: Expr, targets: list[Size], scales: Sequence[float | None], exact: bool
) -> Expr:
    sizes = sizes_of(node, data)[2:]
    if all_known(sizes) and all_known(targets):
        places = [
            _nearest_places(int(str(size)), int(str(target)), scale, exact)
            for size, target, scale in zip(sizes, targets, scales, strict=True)
        ]
        by_sizes = [
            _nearest_places(int(str(size)), int(str(target)), None, exact)
            for size, target in zip(sizes, targets, strict=True)
        ]
        whole = all(
            int(str(target)) % int(str(size)) == 0 for size, target in zip(sizes, targets, strict=True)
        )
        same = all(bool((one == other).all()) for one, other in zip(places, by_sizes, strict=True))
        if not (whole and same):
            made = data
            for place, chosen in enumerate(places):
                if not np.array_equal(chosen, np.arange(int(str(sizes[place])))):
                    made = relay.take(made, const(chosen), axis=2 + place)
            return made
    coordinates, rounding = ("half_pixel", "round_prefer_ceil") if exact else ("asymmetric", "floor")
    return _resized(node, data, targets, "nearest_neighbor", coordinates, rounding)


def _scales(scales: Any, rank: int) -> list[float | None]:
    if scales is None:
        return [None] * rank
    given = list(scales) if isinstance(scales, (list, tuple)) else [scales] * rank
    return [None if one is None else float(one) for one in given]


def _single(*scales: Any) -> Any:
    """Scales that older overloads have as one argument for each axis."""
    given = [one for one in scales if one is not None]
    return given or None


@converter(
    "aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d",
    "aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact3d",
)  # fmt: skip
def upsample_nearest(
    node: TorchNode,
    input: Expr,
    output_size: Any = None,
    scale_factors: Any = None,
    scales: Any = None,
    scales_d: Any = None,
    scales_h: Any = None,
    scales_w: Any = None,
) -> Expr:
    """The nearest element."""
    rank = node.rank(input) - 2
    given = scale_factors if scale_factors is not None else scales
    given = given if given is not None else _single(scales_d, scales_h, scales_w)
    targets = _targets(node, input, output_size, given, rank)
    return _nearest(node, input, targets, _scales(given, rank), "exact" in node.op_type)


@converter("aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d",
           "aten::upsample_bicubic2d")  # fmt: skip
def upsample_linear(
    node: TorchNode,
    input: Expr,
    output_size: Any = None,
    align_corners: bool = False,
    scale_factors: Any = None,
    scales: Any = None,
    scales_d: Any = None,
    scales_h: Any = None,
    scales_w: Any = None,
) -> Expr:
    """Interpolated between the elements around each place."""
    rank = node.rank(input) - 2
    given = scale_factors if scale_factors is not None else scales
    given = given if given is not None else _single(scales_d, scales_h, scales_w)
    targets = _targets(node, input, output_size, given, rank)
    return _interpolated(
        node, input, targets, _scales(given, rank), bool(align_corners), "bicubic" in node.op_type
    )


@converter("aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa")
def upsample_antialiased(
    node: TorchNode,
    input: Expr,
    output_size: Any = None,
    align_corners: bool = False,
    scale_factors: Any = None,
    scales_h: Any = None,
    scales_w: Any = None,
) -> Expr:
    """Interpolated by a kernel that is as wide as an element of a smaller result."""
    given = scale_factors if scale_factors is not None else _single(scales_h, scales_w)
    targets = node.known_ints(_targets(node, input, output_size, given, 2), "the size of the result")
    sizes = node.static_shape(input)[2:]
    made = input
    for place, (size, target, scale) in enumerate(zip(sizes, targets, _scales(given, 2), strict=True)):
        matrix = _weights(size, target, scale, bool(align_corners), "bicubic" in node.op_type, True)
        made = times_matrix(node, made, 2 + place, matrix)
    return made


@converter("aten::__interpolate", "aten::interpolate")
def interpolate(
    node: TorchNode,
    input: Expr,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Expr:
    """Any of these, by name."""
    rank = node.rank(input) - 2
    given = None
    if size is None:
        given = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * rank
    targets = _targets(node, input, size, given, rank)
    scales = _scales(None if recompute_scale_factor else given, rank)
    if mode in ("nearest", "nearest-exact"):
        return _nearest(node, input, targets, scales, mode != "nearest")
    if mode == "area":
        from_sizes = node.known_ints(targets, "the size of the result")
        pools = {
            1: relay.nn.adaptive_avg_pool1d,
            2: relay.nn.adaptive_avg_pool2d,
            3: relay.nn.adaptive_avg_pool3d,
        }
        pooled: Expr = pools[rank](input, output_size=from_sizes, layout=_LAYOUTS[rank])
        return pooled
    if antialias:
        raise node.fail("antialias is not supported here: export the model with torch.export")
    return _interpolated(node, input, targets, scales, bool(align_corners), mode == "bicubic")


# Channels and places


@converter("aten::pixel_shuffle")
def pixel_shuffle(node: TorchNode, input: Expr, upscale_factor: int) -> Expr:
    """Channels moved into larger images."""
    *lead, channels, height, width = sizes_of(node, input)
    factor = int(upscale_factor)
    rank = node.rank(input)
    if not isinstance(channels, int):
        raise node.fail("the number of channels is not known")
    if rank == 4:
        return relay.nn.depth_to_space(input, factor, layout="NCHW", mode="CRD")
    kept = channels // factor**2
    split = reshaped(node, input, [*lead, kept, factor, factor, height, width])
    base = len(lead)
    order = [*range(base), base, base + 3, base + 1, base + 4, base + 2]
    moved = relay.transpose(split, order)
    return reshaped(node, moved, [*lead, kept, _times(height, factor), _times(width, factor)])


def _times(size: Size, factor: int) -> Size:
    return size * factor if isinstance(size, int) else relay.multiply(size, const(factor, "int64"))


def _over(size: Size, factor: int) -> Size:
    return size // factor if isinstance(size, int) else relay.floor_divide(size, const(factor, "int64"))


@converter("aten::pixel_unshuffle")
def pixel_unshuffle(node: TorchNode, input: Expr, downscale_factor: int) -> Expr:
    """Pixels moved into more channels."""
    *lead, channels, height, width = sizes_of(node, input)
    factor = int(downscale_factor)
    high, wide = _over(height, factor), _over(width, factor)
    split = reshaped(node, input, [*lead, channels, high, factor, wide, factor])
    base = len(lead)
    moved = relay.transpose(split, [*range(base), base, base + 2, base + 4, base + 1, base + 3])
    return reshaped(node, moved, [*lead, _times(channels, factor**2), high, wide])


@converter("aten::channel_shuffle", "aten::native_channel_shuffle")
def channel_shuffle(node: TorchNode, input: Expr, groups: int) -> Expr:
    """Channels of the groups interleaved."""
    batch, channels, *rest = sizes_of(node, input)
    split = reshaped(node, input, [batch, groups, _over(channels, groups), *rest])
    order = [0, 2, 1, *range(3, 3 + len(rest))]
    return reshaped(node, relay.transpose(split, order), [batch, channels, *rest])


@converter("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d",
           "aten::_grid_sampler_2d_cpu_fallback")  # fmt: skip
def grid_sampler(
    node: TorchNode, input: Expr, grid: Expr, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Expr:
    """Images read at the places of a grid, which are in -1 to 1."""
    rank = node.rank(input) - 2
    if rank == 3 and interpolation_mode == 2:
        raise node.fail("bicubic reading of volumes does not exist")
    places = relay.transpose(grid, [0, rank + 1, *range(1, rank + 1)])
    return relay.image.grid_sample(
        input,
        places,
        method=("bilinear", "nearest", "bicubic")[interpolation_mode],
        layout=_LAYOUTS[rank],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=bool(align_corners),
    )


@converter("aten::affine_grid_generator")
def affine_grid_generator(node: TorchNode, theta: Expr, size: Any, align_corners: bool) -> Expr:
    """The places of an image's pixels after an affine transformation."""
    extents = node.known_ints(size, "the size")[2:]
    axes = []
    for extent in extents:
        line = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        axes.append(line if align_corners or extent == 1 else line * (extent - 1) / extent)
    mesh = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1] + [np.ones(extents)], axis=-1)
    points = node.constant(mesh.reshape(1, -1, len(extents) + 1), theta)
    batch = size_of(node, theta, 0)
    wide = (
        relay.broadcast_to(points, (batch, *mesh.reshape(-1, len(extents) + 1).shape))
        if isinstance(batch, int)
        else relay.broadcast_to(points, vector([batch, *mesh.reshape(-1, len(extents) + 1).shape]))
    )
    made = relay.nn.batch_matmul(wide, theta, transpose_b=True)
    return reshaped(node, made, [batch, *extents, len(extents)])
