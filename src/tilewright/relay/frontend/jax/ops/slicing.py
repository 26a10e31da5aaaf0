"""Parts of tensors, and what is put around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.registry import converter


@converter("slice")
def slice_(node: JaxNode, data: Expr) -> Expr:
    """A part with known bounds."""
    if 0 in node.result_shape():
        return relay.zeros(node.result_shape(), node.result_dtype())
    return relay.strided_slice(
        data, node.list_attr("start_indices"), node.list_attr("limit_indices"), node.list_attr("strides")
    )


@converter("pad")
def pad(node: JaxNode, data: Expr, value: Expr) -> Expr:
    """A value around a tensor and between its elements; less than none cuts elements off."""
    return padded(
        node,
        data,
        value,
        node.list_attr("edge_padding_low"),
        node.list_attr("edge_padding_high"),
        node.list_attr("interior_padding"),
    )


def padded(
    node: JaxNode,
    data: Expr,
    value: Expr,
    before: Sequence[int],
    after: Sequence[int],
    between: Sequence[int],
) -> Expr:
    """A value around a tensor and between its elements; less than none cuts elements off."""
    if any(between):
        data = _spread(node, data, value, between)
    around = [(max(low, 0), max(high, 0)) for low, high in zip(before, after, strict=True)]
    if any(pair != (0, 0) for pair in around):
        data = relay.nn.pad(data, around, node.source(value))
    if min([*before, *after], default=0) < 0:
        shape = node.static_shape(data)
        begin = [max(-low, 0) for low in before]
        end = [extent - max(-high, 0) for extent, high in zip(shape, after, strict=True)]
        data = relay.strided_slice(data, begin, end)
    return data


def _spread(node: JaxNode, data: Expr, value: Expr, between: Sequence[int]) -> Expr:
    """A tensor with a value between its elements: each element is followed by as many, which the last one loses."""
    shape = node.static_shape(data)
    standing, around, merged = [], [], []
    for extent, gap in zip(shape, between, strict=True):
        standing += [extent, 1]
        around += [(0, 0), (0, gap)]
        merged.append(extent * (gap + 1))
    made = relay.reshape(relay.nn.pad(relay.reshape(data, standing), around, node.source(value)), merged)
    end = [extent - gap for extent, gap in zip(merged, between, strict=True)]
    return relay.strided_slice(made, [0] * len(shape), end)


# With bounds that are computed


def held_start(node: JaxNode, start: Expr, last: int) -> Expr:
    """A beginning that leaves room for what begins there."""
    wide = relay.cast(node.source(start), "int64")
    return relay.minimum(relay.maximum(wide, relay.const(0, "int64")), relay.const(last, "int64"))


def _known(node: JaxNode, start: Any) -> int | None:
    found = node.value(node.source(start))
    return None if found is None else int(found.reshape(-1)[0])


@converter("dynamic_slice")
def dynamic_slice(node: JaxNode, data: Expr, *starts: Expr) -> Expr:
    """A part of known size whose beginning is computed."""
    for axis, (start, size) in enumerate(zip(starts, node.list_attr("slice_sizes"), strict=True)):
        extent = node.static_shape(data)[axis]
        if size == extent:
            continue
        known = _known(node, start)
        if known is not None:
            begin = min(max(known, 0), extent - size)
            data = relay.strided_slice(data, [begin], [begin + size], [1], [axis])
            continue
        places = relay.add(held_start(node, start, extent - size), _count(size))
        data = relay.take(data, places, axis)
    return data


@converter("dynamic_update_slice")
def dynamic_update_slice(node: JaxNode, data: Expr, update: Expr, *starts: Expr) -> Expr:
    """A tensor with a part replaced whose beginning is computed: each element is its own, or one of the part."""
    shape, part = node.static_shape(data), node.static_shape(update)
    inside: Expr | None = None
    for axis, (start, extent, size) in enumerate(zip(starts, shape, part, strict=True)):
        if size == extent:
            continue
        places = relay.subtract(_count(extent), held_start(node, start, extent - size))
        update = relay.take(update, places, axis, mode="clip")
        here = relay.logical_and(
            relay.greater_equal(places, relay.const(0, "int64")),
            relay.less(places, relay.const(size, "int64")),
        )
        here = relay.reshape(here, [extent if place == axis else 1 for place in range(len(shape))])
        inside = here if inside is None else relay.logical_and(inside, here)
    return update if inside is None else relay.where(inside, update, data)


def _count(extent: int) -> Expr:
    return relay.arange(relay.const(extent, "int64"), dtype="int64")
