"""Gathering and scattering, in StableHLO's general form.

Dimensions of the operand from which whole extents are taken stay as they are; the others become one, in which places
are counted row by row. Both operations are then one ``take`` or one ``scatter_nd`` along that dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.reduction import reducer
from tilewright.relay.frontend.jax.ops.shape import permuted, reshaped
from tilewright.relay.frontend.jax.package import bindings
from tilewright.relay.frontend.jax.registry import converter

_MODES: Final = {"second": "update", "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True)
class Places:
    """How indices address windows of an operand, whatever is done with the windows."""

    shape: tuple[int, ...]
    """Of the operand."""
    sizes: list[int]
    """Of a window, in every dimension of the operand."""
    dropped: list[int]
    """Dimensions of size one that the windows do not show."""
    batching: list[int]
    """Dimensions that go with dimensions of the indices."""
    index_batching: list[int]
    """Those dimensions of the indices."""
    index_map: list[int]
    """The dimension of the operand that each element of an index is for."""
    vector: int
    """The dimension of the indices along which the elements of one index are."""

    @property
    def whole(self) -> list[int]:
        """Dimensions that every window has all of."""
        return [
            axis
            for axis, (extent, size) in enumerate(zip(self.shape, self.sizes, strict=True))
            if size == extent and axis not in self.dropped and axis not in self.batching
        ]

    @property
    def addressed(self) -> list[int]:
        """The other dimensions."""
        whole = self.whole
        return [axis for axis in range(len(self.shape)) if axis not in whole]

    @property
    def shown(self) -> list[int]:
        """The dimensions that windows show, in order."""
        return [
            axis for axis in range(len(self.shape)) if axis not in self.dropped and axis not in self.batching
        ]

    @property
    def partial(self) -> list[int]:
        """Those of them of which a window has a part."""
        whole = self.whole
        return [axis for axis in self.shown if axis not in whole]

    @property
    def rows(self) -> int:
        """How many places there are in the addressed dimensions."""
        return math.prod(self.shape[axis] for axis in self.addressed)


def _flat_places(node: JaxNode, indices: Expr, places: Places, hold: bool) -> tuple[Expr, list[int]]:
    """The place of each element of each window among the addressed dimensions, and the shape of the batch of windows.

    Beginnings are held where the window fits if ``hold``; else windows that do not fit have a place after the last.
    """
    given = list(node.static_shape(indices))
    if places.vector == len(given):
        indices, given = reshaped(node, indices, [*given, 1]), [*given, 1]
    batch = [extent for axis, extent in enumerate(given) if axis != places.vector]
    rank = len(batch) + len(places.partial)
    total: Expr = relay.const(0, "int64")
    fits: Expr | None = None
    for axis in places.addressed:
        extent, size = places.shape[axis], places.sizes[axis]
        position: Expr = relay.const(0, "int64")
        if axis in places.index_map:
            column = places.index_map.index(axis)
            chosen = relay.take(indices, relay.const(column, "int64"), axis=places.vector)
            position = reshaped(node, relay.cast(chosen, "int64"), [*batch, *[1] * len(places.partial)])
            low, high = relay.const(0, "int64"), relay.const(extent - size, "int64")
            if hold:
                position = relay.minimum(relay.maximum(position, low), high)
            else:
                here = relay.logical_and(relay.greater_equal(position, low), relay.less_equal(position, high))
                fits = here if fits is None else relay.logical_and(fits, here)
        elif axis in places.batching:
            where = places.index_batching[places.batching.index(axis)]
            where -= where > places.vector
            position = _counted(extent, where, rank)
        if axis in places.partial:
            along = _counted(size, len(batch) + places.partial.index(axis), rank)
            position = relay.add(position, along)
        total = relay.add(relay.multiply(total, relay.const(extent, "int64")), position)
    if fits is not None:
        total = relay.where(fits, total, relay.const(places.rows, "int64"))
    wide = [*batch, *(places.sizes[axis] for axis in places.partial)]
    if list(node.static_shape(total)) != wide:
        total = relay.broadcast_to(total, tuple(wide))
    return total, batch


def _counted(extent: int, axis: int, rank: int) -> Expr:
    line = relay.arange(relay.const(extent, "int64"), dtype="int64")
    return relay.reshape(line, [extent if place == axis else 1 for place in range(rank)])


def _as_rows(node: JaxNode, data: Expr, places: Places) -> Expr:
    """The operand with its addressed dimensions in front, as one."""
    turned = permuted(node, data, [*places.addressed, *places.whole])
    return reshaped(node, turned, [places.rows, *(places.shape[axis] for axis in places.whole)])


def _window_order(places: Places, windows: Sequence[int], rank: int) -> list[int]:
    """The dimensions of a tensor of windows in our order: the batch, parts of windows, whole extents."""
    at = dict(zip(places.shown, windows, strict=True))
    batch = [axis for axis in range(rank) if axis not in windows]
    return [*batch, *(at[axis] for axis in places.partial), *(at[axis] for axis in places.whole)]


@converter("gather")
def gather(node: JaxNode, data: Expr, indices: Expr) -> Expr:
    """Windows of a tensor; their beginnings are held where they fit, as StableHLO wants it. JAX's other modes of
    indexing come with comparisons and selections of their own."""
    numbers = bindings().stablehlo.GatherDimensionNumbers(node.operation.attributes["dimension_numbers"])
    places = Places(
        node.static_shape(data),
        node.list_attr("slice_sizes"),
        list(numbers.collapsed_slice_dims),
        list(numbers.operand_batching_dims),
        list(numbers.start_indices_batching_dims),
        list(numbers.start_index_map),
        int(numbers.index_vector_dim),
    )
    if 0 in node.result_shape():
        return relay.zeros(node.result_shape(), node.result_dtype())
    flat, _ = _flat_places(node, indices, places, hold=True)
    made = relay.take(_as_rows(node, data, places), node.settled(flat), axis=0)
    order = _window_order(places, list(numbers.offset_dims), len(node.result_shape()))
    return permuted(node, made, [order.index(axis) for axis in range(len(order))])


@converter("scatter")
def scatter(node: JaxNode, *operands: Expr) -> Expr:
    """A tensor with windows replaced, added to, multiplied, or compared. Windows that do not fit are left out."""
    if len(operands) != 3:
        raise node.fail("scattering into several tensors at once is not supported")
    data, indices, updates = operands
    numbers: Any = bindings().stablehlo.ScatterDimensionNumbers(
        node.operation.attributes["scatter_dimension_numbers"]
    )
    mode = _MODES.get(reducer(node.regions[0]) or "")
    if mode is None:
        raise node.fail("scattering supports replacing, adding, multiplying, maximum and minimum")
    shape, windows = node.static_shape(data), list(numbers.update_window_dims)
    dropped, batching = list(numbers.inserted_window_dims), list(numbers.input_batching_dims)
    shown = [axis for axis in range(len(shape)) if axis not in dropped and axis not in batching]
    sizes = [1] * len(shape)
    for axis, place in zip(shown, windows, strict=True):
        sizes[axis] = node.static_shape(updates)[place]
    places = Places(
        shape,
        sizes,
        dropped,
        batching,
        list(numbers.scatter_indices_batching_dims),
        list(numbers.scattered_dims_to_operand_dims),
        int(numbers.index_vector_dim),
    )
    if 0 in node.static_shape(updates):
        return data
    flat, _ = _flat_places(node, indices, places, hold=False)
    count = math.prod(node.static_shape(flat))
    kept = [shape[axis] for axis in places.whole]
    order = _window_order(places, windows, node.rank(updates))
    values = reshaped(node, permuted(node, updates, order), [count, *kept])
    at = node.settled(reshaped(node, flat, [1, count]))
    made = relay.scatter_nd(_as_rows(node, data, places), at, values, mode)
    turned = [*places.addressed, *places.whole]
    back = reshaped(node, made, [shape[axis] for axis in turned])
    return permuted(node, back, [turned.index(axis) for axis in range(len(shape))])
