"""Operators that return the shape of a tensor, and reshapes."""

from __future__ import annotations

from math import prod
from typing import cast

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.dimensions import (
    Extent,
    as_scalar,
    element,
    extent_of,
    int64,
    reshaped,
    shape_vector,
    vector,
    with_known,
)
from tilewright.relay.frontend.onnx.ops.runtime_axes import squeezed_at, unsqueezed_at
from tilewright.relay.frontend.onnx.registry import converter


@converter("Shape")
def shape(node: Node, data: RelayExpr) -> RelayExpr:
    """The shape, or the part from ``start`` to ``end`` of it."""
    known = list(node.shape(data))
    part = slice(int(node.attr("start", 0)), node.attr("end", None))
    first, last, _ = part.indices(len(known))
    if (first, last) == (0, len(known)):
        return shape_vector(node, data)
    items = known[part]
    if not items:
        return node.constants([])
    made = relay.strided_slice(relay.shape_of(data, "int64"), [first], [last])
    return node.graph.note_partial(made, items)


@converter("Size")
def size(node: Node, data: RelayExpr) -> RelayExpr:
    """The number of elements."""
    known = node.shape(data)
    total = None if None in known and 0 not in known else prod(extent or 0 for extent in known)
    return node.graph.note_partial(relay.ndarray_size(data, "int64"), [total])


@converter("Reshape")
def reshape_attribute(node: Node, data: RelayExpr) -> RelayExpr:
    """The shape as an attribute, before opset 5."""
    return relay.reshape(data, [int(extent) for extent in node.attr("shape")])


@converter("Reshape", since=5)
def reshape(node: Node, data: RelayExpr, shape: RelayExpr) -> RelayExpr:
    """The shape as an input: 0 keeps a dimension (unless ``allowzero``), -1 is what is left."""
    allow_zero = bool(node.attr("allowzero", 0))
    items = node.partial(shape)
    if items is None:
        raise node.needs_value(shape, "the shape, whose length is not known,")
    if any(item is not None and item < -1 for item in items):
        raise node.fail(f"the shape {items} has dimensions below -1")
    have = node.shape(data)
    made: RelayExpr
    if None not in items:
        made = relay.reshape(data, items, allowzero=allow_zero)
    elif items.count(None) == 1 and -1 not in items and 0 not in items:
        # Whatever the dimension is, it is what is left.
        made = relay.reshape(data, [-1 if item is None else item for item in items])
    else:
        made = relay.reshape(data, int64(node, shape), allowzero=allow_zero)
        known = [
            (have[place] if place < len(have) and not allow_zero else None) if item == 0 else item
            for place, item in enumerate(items)
        ]
        made = with_known(node, made, [None if item == -1 else item for item in known])
    values = node.partial(data)
    return made if values is None or len(items) > 1 else node.graph.note_partial(made, values)


@converter("Flatten")
def flatten(node: Node, data: RelayExpr) -> RelayExpr:
    """A matrix: the dimensions before ``axis``, and those from it on."""
    have = node.shape(data)
    axis = int(node.attr("axis", 1))
    if not -len(have) <= axis <= len(have):
        raise node.fail(f"axis {axis} is out of range for {len(have)} dimensions")
    axis = axis + len(have) if axis < 0 else axis
    rows, columns = (_product(part) for part in (have[:axis], have[axis:]))
    if rows is not None and columns is not None:
        return relay.reshape(data, (rows, columns), allowzero=True)
    if rows is not None or columns is not None:
        return relay.reshape(data, [-1 if extent is None else extent for extent in (rows, columns)])
    if axis == 1:
        return relay.reshape(data, (0, -1))
    extents = [as_scalar(extent_of(node, data, place)) for place in range(axis)]
    total = extents[0]
    for extent in extents[1:]:
        total = relay.multiply(total, extent)
    return relay.reshape(data, vector(node, [total, -1]))


def _product(extents: tuple[int | None, ...]) -> int | None:
    return None if None in extents else prod(extent or 0 for extent in extents)


@converter("Squeeze")
def squeeze(node: Node, data: RelayExpr) -> RelayExpr:
    """The axes as an attribute, before opset 13."""
    return _squeezed(node, data, node.attr("axes", None))


@converter("Squeeze", since=13)
def squeeze_input(node: Node, data: RelayExpr, axes: RelayExpr | None = None) -> RelayExpr:
    """The axes as an input."""
    if axes is not None and node.value(axes) is None:
        return squeezed_at(node, cast(Expr, data), cast(Expr, axes))
    return _squeezed(node, data, None if axes is None else node.ints(axes, "axes"))


def _squeezed(node: Node, data: RelayExpr, axes: list[int] | None) -> RelayExpr:
    if axes is not None and not axes:
        return data
    if axes is None:
        node.static_shape(data, "the tensor, all of whose dimensions of one are dropped,")
    items = node.partial(data)
    made = relay.squeeze(data, axes)
    return made if items is None else node.graph.note_partial(made, items)


@converter("Unsqueeze")
def unsqueeze(node: Node, data: RelayExpr) -> RelayExpr:
    """The axes as an attribute, before opset 13."""
    return _unsqueezed(node, data, node.attr("axes"))


@converter("Unsqueeze", since=13)
def unsqueeze_input(node: Node, data: RelayExpr, axes: RelayExpr) -> RelayExpr:
    """The axes as an input."""
    if node.value(axes) is None:
        return unsqueezed_at(node, cast(Expr, data), cast(Expr, axes))
    return _unsqueezed(node, data, node.ints(axes, "axes"))


def _unsqueezed(node: Node, data: RelayExpr, axes: list[int]) -> RelayExpr:
    rank = node.rank(data) + len(axes)
    places = sorted(node.from_front(axis, rank) for axis in axes)
    if len(set(places)) != len(places):
        raise node.fail(f"the axes {axes} contain one twice")
    items = node.partial(data)
    made = data
    for place in places:
        made = relay.expand_dims(made, place)
    return made if items is None or rank > 1 else node.graph.note_partial(made, items)


@converter("Transpose")
def transpose(node: Node, data: RelayExpr) -> RelayExpr:
    """The axes in another order, by default turned around."""
    return relay.transpose(data, node.attr("perm", None))


@converter("Identity")
def identity(node: Node, data: RelayExpr) -> RelayExpr:
    """Returns its input: a tensor, a sequence or an optional."""
    return data


@converter("Expand")
def expand(node: Node, data: RelayExpr, shape: RelayExpr) -> RelayExpr:
    """The tensor repeated along axes of one; dimensions of one in the shape keep those of the tensor."""
    wanted = node.partial(shape)
    if wanted is None:
        raise node.needs_value(shape, "the shape, whose length is not known,")
    have = node.shape(data)
    rank = max(len(have), len(wanted))
    extents: list[Extent] = []
    for place in range(rank):
        mine, other = place - (rank - len(have)), place - (rank - len(wanted))
        extents.append(
            _broadcast(
                1 if mine < 0 else extent_of(node, data, mine),
                1 if other < 0 else element(node, shape, other),
            )
        )
    known = [extent for extent in extents if isinstance(extent, int)]
    if len(known) == rank:
        return data if tuple(known) == have else relay.broadcast_to(data, known)
    made = relay.broadcast_to(data, vector(node, extents))
    return with_known(node, made, [extent if isinstance(extent, int) else None for extent in extents])


def _broadcast(one: Extent, other: Extent) -> Extent:
    """The extent of two that are broadcast. What does not fit is found when the tensor is repeated."""
    if isinstance(one, int) and one != 1:
        return one
    if isinstance(other, int) and other != 1:
        return other
    if isinstance(one, int):
        return other
    if isinstance(other, int):
        return one
    return relay.where(relay.equal(one, const(1, "int64")), other, one)


@converter("Tile", since=6)
def tile(node: Node, data: RelayExpr, repeats: RelayExpr) -> RelayExpr:
    """The whole tensor repeated along each axis."""
    times = node.partial(repeats)
    rank = node.rank(data)
    if times is not None and None not in times:
        if 0 in times:
            extents = [0 if time == 0 else extent_of(node, data, axis) for axis, time in enumerate(times)]
            return reshaped(node, relay.strided_slice(data, [0] * rank, [0] * rank), extents)
        return relay.tile(data, times) if rank else data
    made = relay.tile(data, int64(node, repeats))
    if times is None:
        return made
    products = [
        extent * time if extent is not None and time is not None else None
        for extent, time in zip(node.shape(data), times, strict=True)
    ]
    return with_known(node, made, products)


@converter("Dropout")
def dropout(node: Node, data: RelayExpr, *settings: RelayExpr | None) -> list[RelayExpr]:
    """Nothing is dropped when a model is used; the mask says that all was kept.

    In training mode a ratio of zero is the one that can be computed without randomness.
    """
    ratio = settings[0] if settings else None
    training = settings[1] if len(settings) > 1 else None
    if training is not None and bool(node.required_value(training, "training_mode").reshape(-1)[0]):
        given = 0.5 if ratio is None else float(node.required_value(ratio, "ratio").reshape(-1)[0])
        if given != 0.0:
            raise node.fail(f"in training mode {given} of the elements would be dropped at random")
    # Before opset 10 the mask has the type of the data.
    mask_type = node.dtype(data) if node.opset < 10 else "bool"
    return [data, relay.cast(relay.ones_like(data), mask_type)] if node.wants(1) else [data]
