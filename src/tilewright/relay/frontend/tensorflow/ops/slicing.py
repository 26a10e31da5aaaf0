"""Slices, and elements by index: gathering, scattering, choosing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import (
    Size,
    added,
    all_known,
    known_or_none,
    vector,
    with_known,
)
from tilewright.relay.frontend.tensorflow.ops.shape import filled
from tilewright.relay.frontend.tensorflow.registry import converter

_END: Final = 2**31 - 1


@converter("Slice", "SLICE")
def slice_(node: GraphNode, data: Expr, begin: Expr, size: Expr) -> Expr:
    """A box of elements: where it begins, and how large it is; -1 is all that is left."""
    begins, sizes = node.elements(begin, "the begin"), node.elements(size, "the size")
    if all_known(begins) and all_known(sizes):
        known = [int(one) for one in begins], [int(one) for one in sizes]  # type: ignore[arg-type]
        ends = [_END if length == -1 else first + length for first, length in zip(*known, strict=True)]
        return relay.strided_slice(data, known[0], ends, [1] * len(ends))
    # Of sizes that only the program knows, a negative one means all that is left as well.
    made = relay.strided_slice(data, vector(begins), vector(sizes), slice_mode="size")
    extents = [
        node.shape(data)[axis] if length == -1 and first == 0 else length if length != -1 else None
        for axis, (first, length) in enumerate(zip(begins, known_or_none(sizes), strict=True))
    ]
    return with_known(node, made, extents)


@converter("StridedSlice", "STRIDED_SLICE")
def strided_slice(node: GraphNode, data: Expr, begin: Expr, end: Expr, strides: Expr) -> Expr:
    """Python's subscripts: slices, single elements, new axes and an ellipsis."""
    begins, ends = node.elements(begin, "the begin"), node.elements(end, "the end")
    steps = node.ints(strides, "the strides")
    masks = {
        name: int(node.attr(f"{name}_mask", 0))
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    if node.attr("offset", False):
        ends = [added(first, length) for first, length in zip(begins, ends, strict=True)]
    rank = node.rank(data)
    specified = len(steps)
    visible = sum(not (masks["ellipsis"] | masks["new_axis"]) >> place & 1 for place in range(specified))
    subscripts: list[Any] = []
    for place in range(specified):
        if masks["ellipsis"] >> place & 1:
            subscripts += [slice(None)] * (rank - visible)
        elif masks["new_axis"] >> place & 1:
            subscripts.append(None)
        elif masks["shrink_axis"] >> place & 1:
            subscripts.append(begins[place])
        else:
            first = None if masks["begin"] >> place & 1 else begins[place]
            last = None if masks["end"] >> place & 1 else ends[place]
            subscripts.append(slice(first, last, steps[place]))
    return subscripted(node, data, subscripts)


def subscripted(node: GraphNode, data: Expr, subscripts: list[Any]) -> Expr:
    """``data[subscripts]``: slices whose bounds may be scalars, numbers or scalars for single elements, None for a new
    axis."""
    followed = node.scope.vectors.get(data)
    if followed is not None and node.rank(data) == 1 and len(subscripts) == 1:
        (only,) = subscripts
        if isinstance(only, int):
            return node.of_elements([followed[only]], node.dtype(data), scalar=True)
        if isinstance(only, slice) and all_known([part or 0 for part in (only.start, only.stop)]):
            return node.of_elements(followed[only], node.dtype(data))
    data, shrunk = _cut(node, data, [one for one in subscripts if one is not None])
    if shrunk:
        data = relay.squeeze(data, axis=shrunk)
    # New axes are counted in the result, where the axes of single elements are gone.
    place = 0
    for one in subscripts:
        if one is None:
            data = relay.expand_dims(data, place)
        if one is None or isinstance(one, slice):
            place += 1
    return data


def _cut(node: GraphNode, data: Expr, subscripts: list[Any]) -> tuple[Expr, list[int]]:
    """The slices of a tensor, and the axes that are left with the single element that was asked for."""
    shrunk: list[int] = []
    axes: list[int] = []
    begins: list[Size] = []
    ends: list[Size] = []
    steps: list[int] = []
    for axis, one in enumerate(subscripts):
        if not isinstance(one, slice):
            shrunk.append(axis)
            if not isinstance(one, int):
                # An index that only the program knows; wrapping takes care of negative ones.
                data = relay.take(data, relay.reshape(one, (1,)), axis=axis, mode="wrap")
                continue
            one = slice(one, _END if one == -1 else one + 1, 1)
        if (one.start, one.stop) == (None, None) and (one.step or 1) == 1:
            continue
        step = 1 if one.step is None else int(one.step)
        axes.append(axis)
        begins.append((0 if step > 0 else _END) if one.start is None else one.start)
        ends.append((_END if step > 0 else -_END) if one.stop is None else one.stop)
        steps.append(step)
    if not axes:
        return data, shrunk
    if all_known(begins) and all_known(ends):
        return relay.strided_slice(data, begins, ends, steps, axes=axes), shrunk
    whole = range(node.rank(data))
    every: dict[int, tuple[Size, Size, int]] = {axis: (0, _END, 1) for axis in whole}
    every.update(
        (axis, bounds) for axis, bounds in zip(axes, zip(begins, ends, steps, strict=True), strict=True)
    )
    first, last, step_of = zip(*(every[axis] for axis in whole), strict=True)
    made = relay.strided_slice(data, vector(first), vector(last), const(np.asarray(step_of, "int64")))
    return made, shrunk


# Gathering


def gathered(node: GraphNode, data: Expr, indices: Expr, axis: int, batch_dims: int) -> Expr:
    """Elements along an axis by their indices."""
    rank = node.rank(data)
    along = axis % rank
    followed, places = node.scope.vectors.get(data), node.value(indices)
    if followed is not None and places is not None and places.ndim <= 1:
        chosen = [followed[int(place)] for place in places.reshape(-1)]
        return node.of_elements(chosen, node.dtype(data), scalar=places.ndim == 0)
    return relay.take(
        data, indices, axis=along, batch_dims=batch_dims % (node.rank(indices) + 1), mode="clip"
    )


@converter("Gather")
def gather_v1(node: GraphNode, data: Expr, indices: Expr) -> Expr:
    """Elements along the first axis."""
    return gathered(node, data, indices, 0, 0)


@converter("ResourceGather")
def resource_gather(node: GraphNode, data: Expr, indices: Expr) -> Expr:
    """Rows of a variable."""
    return gathered(node, data, indices, 0, int(node.attr("batch_dims", 0)))


@converter("GatherV2")
def gather_v2(node: GraphNode, data: Expr, indices: Expr, axis: Expr) -> Expr:
    """Elements along an axis."""
    along = int(node.number(axis, "the axis"))
    return gathered(node, data, indices, along, int(node.attr("batch_dims", 0)))


@converter("GATHER")
def gather_lite(node: GraphNode, data: Expr, indices: Expr) -> Expr:
    """Elements along an axis."""
    return gathered(node, data, indices, int(node.attr("axis", 0)), int(node.attr("batch_dims", 0)))


@converter("EMBEDDING_LOOKUP")
def embedding_lookup(node: GraphNode, indices: Expr, data: Expr) -> Expr:
    """Rows of a table."""
    return relay.take(data, indices, axis=0)


@converter("GatherNd", "GATHER_ND")
def gather_nd(node: GraphNode, data: Expr, indices: Expr) -> Expr:
    """Elements or parts by vectors of indices along the last axis."""
    rank = node.rank(indices)
    depth = node.static_shape(indices)[-1] if node.shape(indices)[-1] is not None else None
    order = [rank - 1, *range(rank - 1)]
    return relay.gather_nd(data, relay.transpose(indices, order), index_rank=depth)


@converter("ScatterNd", "SCATTER_ND")
def scatter_nd(node: GraphNode, indices: Expr, updates: Expr, shape: Expr) -> Expr:
    """Sums of updates in a tensor of zeros."""
    zeros = filled(node, node.elements(shape, "the shape"), node.constant(0, updates))
    return relay.scatter_nd(zeros, _first_axis(node, indices), updates, "add")


_SCATTERS: Final = {
    "TensorScatterUpdate": "update",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "ScatterNdNonAliasingAdd": "add",
}
"""How updates join what is there."""


@converter(*_SCATTERS)
def tensor_scatter(node: GraphNode, data: Expr, indices: Expr, updates: Expr) -> Expr:
    """A tensor with some parts replaced, with updates added or subtracted, or with the greater or lesser of both."""
    given = relay.negative(updates) if node.op_type == "TensorScatterSub" else updates
    return relay.scatter_nd(data, _first_axis(node, indices), given, _SCATTERS[node.op_type])


def _first_axis(node: GraphNode, indices: Expr) -> Expr:
    rank = node.rank(indices)
    return relay.transpose(indices, [rank - 1, *range(rank - 1)]) if rank > 1 else indices


@converter("DYNAMIC_UPDATE_SLICE", "XlaDynamicUpdateSlice")
def dynamic_update_slice(node: GraphNode, data: Expr, update: Expr, begin: Expr) -> Expr:
    """A tensor with a box of it replaced; the box is moved inside where it does not fit."""
    sizes, part = node.static_shape(data), node.static_shape(update, "the update")
    starts = node.elements(begin, "the begin")
    places: list[Any] = []
    for axis, (start, extent, length) in enumerate(zip(starts, sizes, part, strict=True)):
        base = (
            relay.clip(start, 0, extent - length)
            if not isinstance(start, int)
            else const(min(max(start, 0), extent - length), "int64")
        )
        shape = [1] * len(sizes)
        shape[axis] = length
        offsets = const(np.arange(length, dtype="int64").reshape(shape))
        places.append(relay.broadcast_to(relay.add(offsets, relay.cast(base, "int64")), part))
    return relay.scatter_nd(data, relay.stack(places, axis=0), update, "update")


# Choosing


@converter("Where", "WHERE")
def where(node: GraphNode, condition: Expr, *branches: Expr) -> Expr:
    """The places where a condition holds, as int64; with two more inputs, elements of one or the other."""
    if branches:
        return select(node, condition, *branches)
    return relay.cast(relay.argwhere(condition), "int64")


@converter("Select", "SELECT", "SelectV2", "SELECT_V2")
def select(node: GraphNode, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Elements of one tensor where a condition holds, else of the other. Without broadcasting (version 1), a vector of
    conditions chooses rows."""
    rank, wanted = node.rank(condition), node.rank(yes)
    if node.op_type in ("Select", "SELECT") and rank == 1 and wanted > 1:
        condition = relay.expand_dims(condition, 1, wanted - 1)
    return relay.where(condition, yes, no)


@converter("OneHot", "ONE_HOT")
def one_hot(node: GraphNode, indices: Expr, depth: Expr, on: Expr, off: Expr) -> Expr:
    """One number at the index, another elsewhere, along a new axis."""
    count = int(node.number(depth, "the depth"))
    return relay.one_hot(indices, on, off, count, int(node.attr("axis", -1)), node.dtype(on))


@converter("TopKV2", "TOPK_V2", "TopK")
def top_k(node: GraphNode, data: Expr, count: Expr | None = None) -> list[Expr]:
    """The greatest elements along the last axis, and where they are."""
    wanted: Any = int(node.attr("k")) if count is None else node.elements(count, "k")[0]
    if not isinstance(wanted, int):
        wanted = relay.reshape(relay.cast(wanted, "int64"), (1,))
    made: Any = relay.topk(data, k=wanted, axis=-1, ret_type="both", is_ascend=False, dtype="int32")
    return [made[0], made[1]]


@converter("Unique", "UNIQUE", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(node: GraphNode, data: Expr, axis: Expr | None = None) -> list[Expr]:
    """Elements without repetitions in the order in which they first occur, and where each element is among them."""
    counted = node.op_type.startswith("UniqueWithCounts")
    made = relay.unique(data, is_sorted=False, return_counts=counted)
    index = str(node.attr("out_idx", "int32"))
    results = [made[0], relay.cast(made[2], index)]
    return [*results, relay.cast(made[4], index)] if counted else results


@converter("UnravelIndex")
def unravel_index(node: GraphNode, indices: Expr, shape: Expr) -> Expr:
    """Positions along each axis of the elements with these numbers."""
    return relay.unravel_index(indices, shape)
