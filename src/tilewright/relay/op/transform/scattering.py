"""Operators that write elements at indices that are data.

Negative indices count from the back. Updates out of range are left out, or an error under the option
``relay.check_indices``. If an index occurs twice, "update" keeps the last value, and the other modes combine all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Tuple, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import dims, normal_axis, require_at_most, same, tensors
from tilewright.relay.op.transform.indexing import check_indices, vector_depth
from tilewright.relay.op.transform.support import Array
from tilewright.support.errors import ExpressionError

_WRITE = {
    "update": lambda data, place, values: data.__setitem__(place, values),
    "add": np.add.at,
    "mul": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


@attributes
class ScatterAttrs(OpAttrs):
    """The axis whose index is read from the indices."""

    axis: int = 0


@attributes
class ScatterAddAttrs(OpAttrs):
    """The axis whose index is read from the indices."""

    axis: int = 0


def _scatter_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of scatter", "the indices", "the updates")
    if found is None:
        return None
    data, indices, updates = found
    check_indices(indices, "the indices of scatter")
    if data.dtype is not updates.dtype:
        raise RelationError(f"scatter: updates of {updates.dtype} for data of {data.dtype}")
    if not len(data.shape) == len(indices.shape) == len(updates.shape):
        raise RelationError(f"scatter: {data}, indices {indices} and updates {updates} differ in rank")
    axis = normal_axis(attrs.axis, len(data.shape))
    sizes = zip(dims(data), dims(indices), dims(updates), strict=True)
    for place, (size, wanted, given) in enumerate(sizes):
        same(wanted, given, f"scatter: dimension {place} of indices and updates")
        if place != axis:
            message = f"scatter: dimension {place} of the indices is {wanted}, more than {size}"
            require_at_most(wanted, size, message)
    return data


def _scattered(axis: int, mode: str, data: Array, indices: Array, updates: Array) -> Array:
    made = data.copy()
    extent = data.shape[axis]
    index = indices.astype("int64")
    index = np.where(index < 0, index + extent, index)
    valid = (index >= 0) & (index < extent)
    grid = [*np.indices(indices.shape)]
    grid[axis] = index
    _WRITE[mode](made, tuple(one[valid] for one in grid), updates[valid])
    return made


_SCATTER = define(
    "scatter",
    arguments=("data", "indices", "updates"),
    attrs=ScatterAttrs,
    relation=_scatter_relation,
    compute=lambda attrs, inputs, out_type: [topi.scatter(inputs[0], inputs[1], inputs[2], attrs.axis)],
    reference=lambda attrs, *arrays: _scattered(attrs.axis, "update", *arrays),
    kind=OpPattern.OPAQUE,
    updated_argument=0,
    level=10,
    description="Data with elements replaced along an axis.",
)


def scatter(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, axis: int) -> Call:
    """The data with ``updates`` in the places that ``indices`` names along an axis."""
    return Call(_SCATTER, (data, indices, updates), ScatterAttrs(axis))


_SCATTER_ADD = define(
    "scatter_add",
    arguments=("data", "indices", "updates"),
    attrs=ScatterAddAttrs,
    relation=_scatter_relation,
    compute=lambda attrs, inputs, out_type: [topi.scatter_add(inputs[0], inputs[1], inputs[2], attrs.axis)],
    reference=lambda attrs, *arrays: _scattered(attrs.axis, "add", *arrays),
    kind=OpPattern.OPAQUE,
    updated_argument=0,
    level=10,
    description="Data with values added along an axis.",
)


def scatter_add(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, axis: int) -> Call:
    """The data with ``updates`` added in the places that ``indices`` names along an axis."""
    return Call(_SCATTER_ADD, (data, indices, updates), ScatterAddAttrs(axis))


@attributes
class ScatterNDAttrs(OpAttrs):
    """ "update" replaces, "add" adds, "mul" multiplies, "min" and "max" keep the less and the greater."""

    mode: str = "update"

    def check(self) -> None:
        """The mode is known."""
        if self.mode not in _WRITE:
            raise ExpressionError(f"scatter_nd: mode is one of {', '.join(_WRITE)}, not {self.mode!r}")


def _scatter_nd_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of scatter_nd", "the indices", "the updates")
    if found is None:
        return None
    data, places, updates = found
    check_indices(places, "the indices of scatter_nd")
    shape, indices, given = dims(data), dims(places), dims(updates)
    depth = vector_depth(indices, None, "scatter_nd")
    if depth > len(shape):
        raise RelationError(f"scatter_nd: vectors of {depth} do not index {data}")
    if data.dtype is not updates.dtype:
        raise RelationError(f"scatter_nd: updates of {updates.dtype} for data of {data.dtype}")
    wanted = (*indices[1:], *shape[depth:])
    if len(wanted) != len(given):
        raise RelationError(f"scatter_nd: updates {updates} for indices {places} of {data}")
    for place, (one, other) in enumerate(zip(wanted, given, strict=True)):
        same(one, other, f"scatter_nd: dimension {place} of the updates")
    return data


def _scattered_nd(attrs: Any, data: Array, indices: Array, updates: Array) -> Array:
    made = data.copy()
    extents = np.asarray(data.shape[: len(indices)]).reshape(-1, *[1] * (indices.ndim - 1))
    vectors = indices.astype("int64")
    vectors = np.where(vectors < 0, vectors + extents, vectors)
    valid = ((vectors >= 0) & (vectors < extents)).all(axis=0)
    _WRITE[attrs.mode](made, tuple(one[valid] for one in vectors), updates[valid])
    return made


_SCATTER_ND = define(
    "scatter_nd",
    arguments=("data", "indices", "updates"),
    attrs=ScatterNDAttrs,
    relation=_scatter_nd_relation,
    compute=lambda attrs, inputs, out_type: [topi.scatter_nd(inputs[0], inputs[1], inputs[2], attrs.mode)],
    reference=_scattered_nd,
    kind=OpPattern.OPAQUE,
    updated_argument=0,
    description="Data with slices replaced, or combined with others, at index vectors.",
)


def scatter_nd(data: RelayExpr, indices: RelayExpr, updates: RelayExpr, mode: str = "update") -> Call:
    """The data with slices replaced, or combined with others, at index vectors, which run along the first axis of
    ``indices``."""
    return Call(_SCATTER_ND, (data, indices, updates), ScatterNDAttrs(mode))


def segment_sum(data: RelayExpr, segment_ids: RelayExpr, num_segments: Any = None) -> Call:
    """The sums of the slices along the first axis that have the same number in ``segment_ids``.

    Without ``num_segments`` there are as many as the greatest number says.
    """
    count: RelayExpr
    if num_segments is None:
        greatest = call("reshape", call("max", segment_ids, axis=(0,)), newshape=(-1,))
        count = call("cast", greatest, dtype="int64")
        count = call("add", count, const([1], "int64"))
    elif isinstance(num_segments, RelayExpr):
        count = call("cast", call("reshape", num_segments, newshape=(-1,)), dtype="int64")
    else:
        count = const([int(num_segments)], "int64")
    sizes = call("shape_of", data, dtype="int64")
    rest = call("strided_slice", sizes, begin=(1,), end=(-1,), strides=(1,), slice_mode="size")
    shape = call("concatenate", Tuple([count, rest]), axis=0)
    empty = call("dyn.full", call("cast_like", const(0), data), shape, dtype="")
    # One number for each element: the numbers along the first axis, repeated over the others.
    ones = call("cast_like", call("ones_like", call("reshape", data, newshape=(0, -1))), segment_ids)
    column = call("multiply", ones, call("expand_dims", segment_ids, axis=1))
    return call("scatter_add", empty, call("reshape_like", column, data), data, axis=0)
