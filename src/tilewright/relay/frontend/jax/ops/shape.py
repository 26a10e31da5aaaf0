"""Literals, and operations that give elements another place or repeat them."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.registry import converter


@converter("constant")
def constant(node: JaxNode) -> Expr:
    """A literal; one that repeats a single number is that number, broadcast."""
    value = np.asarray(node.attr("value"))
    if value.size > 1 and node.operation.attributes["value"].is_splat:
        return node.broadcast(relay.const(value.reshape(-1)[0], node.result_dtype()), node.result_shape())
    return node.scope.stored(f"constant_{len(node.scope.params)}", value)


@converter("iota")
def iota(node: JaxNode) -> Expr:
    """The index along one dimension."""
    shape, along = node.result_shape(), int(node.attr("iota_dimension"))
    line = relay.arange(relay.const(shape[along], node.result_dtype()), dtype=node.result_dtype())
    return node.broadcast(_standing(line, along, shape), shape)


def _standing(line: Expr, along: int, shape: tuple[int, ...]) -> Expr:
    return relay.reshape(line, [extent if place == along else 1 for place, extent in enumerate(shape)])


def reshaped(node: JaxNode, data: Expr, shape: tuple[int, ...] | list[int]) -> Expr:
    """A tensor in another shape of as many elements."""
    if node.shape(data) == tuple(shape):
        return data
    if 0 in shape:
        return relay.zeros(tuple(shape), node.dtype(data))
    return relay.reshape(data, list(shape))


@converter("reshape")
def reshape(node: JaxNode, data: Expr) -> Expr:
    """The elements in another shape."""
    return reshaped(node, data, node.result_shape())


@converter("broadcast_in_dim")
def broadcast_in_dim(node: JaxNode, data: Expr) -> Expr:
    """A tensor repeated; its dimensions go to those that the attribute lists, in any order."""
    shape, places = node.result_shape(), node.list_attr("broadcast_dimensions")
    data = node.source(data)
    given = node.static_shape(data)
    if len(given) != len(places):  # a scalar that was broadcast before
        return node.broadcast(data, shape)
    order = sorted(range(len(places)), key=lambda place: places[place])
    if order != list(range(len(places))):
        data = relay.transpose(data, order)
    standing = [1] * len(shape)
    for place, extent in zip(places, given, strict=True):
        standing[place] = extent
    return node.broadcast(reshaped(node, data, standing), shape)


@converter("transpose")
def transpose(node: JaxNode, data: Expr) -> Expr:
    """The dimensions in another order."""
    axes = node.list_attr("permutation")
    return permuted(node, data, axes)


def permuted(node: JaxNode, data: Expr, axes: list[int]) -> Expr:
    """The dimensions in another order; weights are stored that way."""
    return data if axes == sorted(axes) else node.permuted(data, axes)


@converter("reverse")
def reverse(node: JaxNode, data: Expr) -> Expr:
    """The elements in the opposite order along some dimensions."""
    for axis in node.list_attr("dimensions"):
        data = relay.reverse(data, axis)
    return data


@converter("concatenate")
def concatenate(node: JaxNode, *parts: Expr) -> Expr:
    """Tensors one after another."""
    return relay.concatenate(list(parts), int(node.attr("dimension")))


@converter("get_dimension_size")
def get_dimension_size(node: JaxNode, data: Expr) -> Expr:
    """The size of a dimension."""
    return relay.const(node.static_shape(data)[int(node.attr("dimension"))], node.result_dtype())


@converter("optimization_barrier", "custom_call Sharding", "custom_call annotate_device_placement")
def same(node: JaxNode, *values: Expr) -> list[Expr]:
    """Nothing that changes a value: hints for compilers and for several devices."""
    return list(values)


@converter("sdy.sharding_constraint")
def sharding_constraint(node: JaxNode, data: Expr) -> Expr:
    """Where a tensor should be, which is the same machine here."""
    return data


@converter("custom_call shape_assertion")
def shape_assertion(node: JaxNode, *values: Expr) -> list[Expr]:
    """A check of dimensions that are known by now."""
    return []
