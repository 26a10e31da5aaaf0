"""Pooling, padding, cropping and enlarging of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.registry import layer_converter
from tilewright.relay.frontend.tensorflow.ops.pooling import average_pooled, max_pooled
from tilewright.relay.frontend.tensorflow.ops.windows import axes_of_space


def _space(node: LayerNode) -> int:
    return int(node.op_type[-2])


def _pooled(node: LayerNode, data: Expr, pool: Callable[..., Expr]) -> Expr:
    layer, layout = node.layer, node.layout_of(_space(node))
    node.with_window(layout, layer.strides, 1, layer.padding)
    size = [1] * len(layout)
    for axis, extent in zip(axes_of_space(layout), layer.pool_size, strict=True):
        size[axis] = int(extent)
    node.attributes["ksize"] = size
    return pool(node, data, layout)


@layer_converter("MaxPooling1D", "MaxPooling2D", "MaxPooling3D")
def max_pooling(node: LayerNode, data: Expr) -> Expr:
    """The greatest element of each window."""
    return _pooled(node, data, max_pooled)


@layer_converter("AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def average_pooling(node: LayerNode, data: Expr) -> Expr:
    """The mean of each window."""
    return _pooled(node, data, average_pooled)


def _global(node: LayerNode, data: Expr, function: Any) -> Expr:
    axes = axes_of_space(node.layout_of(_space(node)))
    return function(data, axis=axes, keepdims=bool(node.layer.keepdims))  # type: ignore[no-any-return]


@layer_converter("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D")
def global_average(node: LayerNode, data: Expr) -> Expr:
    """The mean of each channel."""
    return _global(node, data, relay.mean)


@layer_converter("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D")
def global_maximum(node: LayerNode, data: Expr) -> Expr:
    """The greatest element of each channel."""
    return _global(node, data, relay.max)


def _sides(given: Any, space: int) -> list[tuple[int, int]]:
    """Numbers before and after each axis."""
    if space == 1 and isinstance(given, (list, tuple)) and isinstance(given[0], int):
        return [(int(given[0]), int(given[1]))]
    return [(int(before), int(after)) for before, after in given]


@layer_converter("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(node: LayerNode, data: Expr) -> Expr:
    """A border of zeros."""
    layout = node.layout_of(_space(node))
    widths = [(0, 0)] * len(layout)
    for axis, sides in zip(axes_of_space(layout), _sides(node.layer.padding, _space(node)), strict=True):
        widths[axis] = sides
    return relay.nn.pad(data, widths, node.constant(0, data))


@layer_converter("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(node: LayerNode, data: Expr) -> Expr:
    """An image without its border."""
    layout = node.layout_of(_space(node))
    axes = axes_of_space(layout)
    sides = _sides(node.layer.cropping, _space(node))
    begins = [before for before, _ in sides]
    ends = [-after if after else 2**31 - 1 for _, after in sides]
    return relay.strided_slice(data, begins, ends, [1] * len(axes), axes=axes)


@layer_converter("UpSampling1D", "UpSampling2D", "UpSampling3D")
def up_sampling(node: LayerNode, data: Expr) -> Expr:
    """An image enlarged: elements repeated, or interpolated."""
    layer, layout = node.layer, node.layout_of(_space(node))
    factors = (
        [int(layer.size)] * _space(node) if isinstance(layer.size, int) else [int(one) for one in layer.size]
    )
    method = str(getattr(layer, "interpolation", "nearest"))
    if method == "nearest":
        for axis, factor in zip(axes_of_space(layout), factors, strict=True):
            data = relay.repeat(data, factor, axis)
        return data
    if method not in ("bilinear", "bicubic"):
        raise node.fail(f"the interpolation {method!r} is not supported")
    sizes = [node.shape(data)[axis] for axis in axes_of_space(layout)]
    if None in sizes:
        raise node.fail("the size of the image has to be known")
    wanted = [int(size or 0) * factor for size, factor in zip(sizes, factors, strict=True)]
    kind = "linear" if method == "bilinear" else "cubic"
    return relay.image.resize2d(data, wanted, layout, kind, "half_pixel", cubic_exclude=1)


@layer_converter("Resizing")
def resizing(node: LayerNode, data: Expr) -> Expr:
    """An image in another size."""
    layer, layout = node.layer, node.layout_of(2)
    if (
        layer.crop_to_aspect_ratio
        or layer.pad_to_aspect_ratio
        or layer.interpolation not in ("bilinear", "nearest")
    ):
        raise node.fail("only plain bilinear and nearest resizing is supported")
    nearest = layer.interpolation == "nearest"
    return relay.image.resize2d(
        data,
        [int(layer.height), int(layer.width)],
        layout,
        "nearest_neighbor" if nearest else "linear",
        "half_pixel",
        "round_prefer_ceil" if nearest else "",
    )
