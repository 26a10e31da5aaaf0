"""Layers that move elements, join tensors, or do nothing when a model is used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.registry import layer_converter
from tilewright.relay.frontend.tensorflow.ops.matrices import products


@layer_converter(
    "Dropout", "AlphaDropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout",
    "GaussianNoise", "ActivityRegularization", "Identity", "StochasticDepth", "RandomFlip", "RandomRotation",
    "RandomZoom", "RandomTranslation", "RandomContrast", "RandomBrightness",
)  # fmt: skip
def nothing(node: LayerNode, data: Expr) -> Expr:
    """What only happens in training."""
    return data


@layer_converter("Flatten")
def flatten(node: LayerNode, data: Expr) -> Expr:
    """The elements of each example as a row."""
    if getattr(node.layer, "data_format", "channels_last") == "channels_first" and node.rank(data) > 2:
        data = relay.transpose(data, [0, *range(2, node.rank(data)), 1])
    sizes = sizes_of(node, data)
    return reshaped(node, data, [sizes[0], multiplied(sizes[1:])])


@layer_converter("Reshape")
def reshape(node: LayerNode, data: Expr) -> Expr:
    """The elements of each example in another shape."""
    return reshaped(node, data, [sizes_of(node, data)[0], *(int(one) for one in node.layer.target_shape)])


@layer_converter("Permute")
def permute(node: LayerNode, data: Expr) -> Expr:
    """The axes of each example in another order."""
    return relay.transpose(data, [0, *(int(axis) for axis in node.layer.dims)])


@layer_converter("RepeatVector")
def repeat_vector(node: LayerNode, data: Expr) -> Expr:
    """Each row several times."""
    return relay.repeat(relay.expand_dims(data, 1), int(node.layer.n), 1)


# Several inputs


@layer_converter("Concatenate")
def concatenate(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """Tensors one after the other along an axis."""
    return relay.concatenate(list(parts), int(node.layer.axis) % node.rank(parts[0]))


def _joined(function: Any, parts: Sequence[Expr]) -> Expr:
    return reduce(function, parts)


@layer_converter("Add")
def add(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The sum."""
    return _joined(relay.add, parts)


@layer_converter("Subtract")
def subtract(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The difference."""
    return _joined(relay.subtract, parts)


@layer_converter("Multiply")
def multiply(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The product."""
    return _joined(relay.multiply, parts)


@layer_converter("Maximum")
def maximum(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The greatest."""
    return _joined(relay.maximum, parts)


@layer_converter("Minimum")
def minimum(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The least."""
    return _joined(relay.minimum, parts)


@layer_converter("Average")
def average(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """The mean."""
    total = _joined(relay.add, parts)
    return relay.multiply(total, node.constant(1 / len(parts), total))


@layer_converter("Dot")
def dot(node: LayerNode, parts: Sequence[Expr]) -> Expr:
    """Products along an axis of each of two tensors."""
    left, right = parts
    layer = node.layer
    given = (layer.axes, layer.axes) if isinstance(layer.axes, int) else tuple(layer.axes)
    axes = [axis % node.rank(part) for axis, part in zip(given, parts, strict=True)]
    if layer.normalize:
        left, right = (
            relay.nn.l2_normalize(part, eps=1e-12, axis=[axis])
            for part, axis in zip(parts, axes, strict=True)
        )
    ranks = [node.rank(part) for part in (left, right)]
    if ranks == [2, 2]:
        return relay.sum(relay.multiply(left, right), axis=[1], keepdims=True)
    if ranks != [3, 3]:
        raise node.fail(f"tensors of {ranks[0]} and {ranks[1]} dimensions are not supported")
    return products(node, left, right, axes[0] == 1, axes[1] == 2)
