"""Operators that gather elements at indices that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call, tensor_type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import (
    Shape,
    broadcast_shapes,
    dims,
    normal_axis,
    require_at_most,
    require_source,
    same,
    shape_text,
    tensors,
    tuple_of_tensors,
)
from tilewright.relay.op.transform.joining import as_tuple
from tilewright.relay.op.transform.support import Array, as_expression, constant_shape, with_extent
from tilewright.support.errors import ExpressionError, OpNotImplemented
from tilewright.te.tensor import Tensor


def check_indices(kind: TensorType, what: str) -> None:
    """Indices are integers."""
    if not kind.dtype.is_integral or kind.dtype.is_bool:
        raise RelationError(f"{what} are integers, not {kind.dtype}")


def _held(indices: Array, extent: int) -> Array:
    """Indices as the operators read them: negative ones count from the back, all are held within the axis."""
    given = indices.astype("int64")
    return np.clip(np.where(given < 0, given + extent, given), 0, extent - 1)


@attributes
class TakeAttrs(OpAttrs):
    """The axis (None for the flattened tensor), how many leading dimensions go together, and what becomes of indices
    that are out of range: held at the ends ("clip"), counted around ("wrap") or not expected ("fast")."""

    batch_dims: int = 0
    axis: int | None = None
    mode: str = "clip"

    def check(self) -> None:
        """The mode is known."""
        if self.mode not in ("clip", "wrap", "fast"):
            raise ExpressionError(f"take: mode is 'clip', 'wrap' or 'fast', not {self.mode!r}")


def _batch_of(attrs: Any, rank: int) -> int:
    return int(attrs.batch_dims + rank if attrs.batch_dims < 0 else attrs.batch_dims)


def _taken_shape(data: Shape, indices: Shape, attrs: Any) -> Shape:
    if attrs.axis is None:
        return indices
    axis = normal_axis(attrs.axis, len(data))
    batch = _batch_of(attrs, len(indices))
    if not 0 <= batch <= min(len(indices), axis):
        raise RelationError(
            f"take: batch_dims {attrs.batch_dims} does not fit axis {axis} and {shape_text(indices)}"
        )
    for place in range(batch):
        same(data[place], indices[place], f"take: batch dimension {place}")
    return (*data[:axis], *indices[batch:], *data[axis + 1 :])


def _take_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of take", "the indices")
    if found is None:
        return None
    data, indices = found
    check_indices(indices, "the indices of take")
    shape, result = dims(data), _taken_shape(dims(data), dims(indices), attrs)
    read = shape if attrs.axis is None else (shape[normal_axis(attrs.axis, len(shape))],)
    require_source(read, result, f"take: there is nothing in {data} to take")
    return TensorType(result, data.dtype)


def _take_reference(attrs: Any, data: Array, indices: Array) -> Array:
    given = indices.astype("int64")
    if attrs.axis is None:
        return data.reshape(-1)[_in_mode(given, data.size, attrs.mode)]
    axis = attrs.axis % data.ndim
    chosen = _in_mode(given, data.shape[axis], attrs.mode)
    batch = _batch_of(attrs, indices.ndim)
    shape: Any = _taken_shape(data.shape, indices.shape, attrs)
    made = np.empty(shape, data.dtype)
    for place in np.ndindex(data.shape[:batch]):
        made[place] = np.take(data[place], chosen[place], axis - batch)
    return made


def _in_mode(indices: Array, extent: int, mode: str) -> Array:
    return indices % extent if mode == "wrap" else np.clip(indices, 0, extent - 1)


def _take_gradient(primal: Any, grad: Any) -> list[Any]:
    """The gradient added up where its elements came from."""
    data, indices = primal.args
    attrs = primal.attrs
    if attrs.batch_dims != 0:
        raise OpNotImplemented("the gradient of take with batch_dims")
    places = _places(data, indices, attrs)
    nothing = call("zeros_like", data)
    if attrs.axis is None:
        flat = call(
            "scatter_nd",
            call("reshape", nothing, newshape=(-1,)),
            call("reshape", places, newshape=(1, -1)),
            call("reshape", grad, newshape=(-1,)),
            mode="add",
        )
        return [call("reshape_like", flat, data), call("zeros_like", indices)]
    rank, depth = len(tensor_type(data).shape), len(tensor_type(indices).shape)
    axis = normal_axis(attrs.axis, rank)
    others = [one for one in range(rank + depth - 1) if not axis <= one < axis + depth]
    to_front = (axis, *(one for one in range(rank) if one != axis))
    added = call(
        "scatter_nd",
        call("transpose", nothing, axes=to_front),
        call("expand_dims", places, axis=0),
        call("transpose", grad, axes=(*range(axis, axis + depth), *others)),
        mode="add",
    )
    back = tuple(int(one) for one in np.argsort(to_front))
    return [call("transpose", added, axes=back), call("zeros_like", indices)]


def _places(data: Any, indices: Any, attrs: Any) -> Any:
    """The indices that were read, with those out of range as the mode reads them."""
    if attrs.mode == "fast":
        return indices
    kind = str(tensor_type(indices).dtype)
    shape = dims(tensor_type(data))
    if attrs.axis is None:
        extent: Any = call("cast_like", call("ndarray_size", data, dtype="int64"), indices)
    elif isinstance(shape[normal_axis(attrs.axis, len(shape))], int):
        extent = const(shape[normal_axis(attrs.axis, len(shape))], kind)
    else:
        sizes = call("shape_of", data, dtype="int64")
        extent = call(
            "cast_like", call("take", sizes, const(attrs.axis % len(shape), "int64"), axis=0), indices
        )
    if attrs.mode == "wrap":
        return call("floor_mod", indices, extent)
    last = call("subtract", extent, const(1, kind))
    return call("maximum", call("minimum", indices, last), const(0, kind))


_TAKE = define(
    "take",
    arguments=("data", "indices"),
    attrs=TakeAttrs,
    relation=_take_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.take(inputs[0], inputs[1], attrs.axis, attrs.batch_dims, attrs.mode)
    ],
    reference=_take_reference,
    gradient=_take_gradient,
    kind=OpPattern.INJECTIVE,
    level=2,
    description="Slices along an axis at indices.",
)


def take(
    data: RelayExpr, indices: RelayExpr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> Call:
    """Slices along an axis at indices; without an axis, elements of the flattened tensor.

    Indices out of range are held at the nearer end ("clip"), counted around ("wrap") or not expected ("fast"). Under
    the option ``relay.check_indices`` they are an error, but for "wrap".
    """
    return Call(_TAKE, (data, indices), TakeAttrs(batch_dims, axis, mode))


@attributes
class GatherAttrs(OpAttrs):
    """The axis whose index is read from the indices."""

    axis: int = 0


def _gather_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of gather", "the indices")
    if found is None:
        return None
    data, indices = found
    check_indices(indices, "the indices of gather")
    if len(data.shape) != len(indices.shape):
        raise RelationError(f"gather: {data} and indices {indices} differ in rank")
    axis = normal_axis(attrs.axis, len(data.shape))
    for place, (size, wanted) in enumerate(zip(dims(data), dims(indices), strict=True)):
        if place != axis:
            message = f"gather: dimension {place} of the indices is {wanted}, more than {size}"
            require_at_most(wanted, size, message)
    require_source((dims(data)[axis],), dims(indices), f"gather: axis {axis} of {data} has no elements")
    return TensorType(indices.shape, data.dtype)


def _gather_reference(attrs: Any, data: Array, indices: Array) -> Array:
    axis = attrs.axis % data.ndim
    grid: list[Array] = [*np.indices(indices.shape, sparse=True)]
    grid[axis] = _held(indices, data.shape[axis])
    return data[tuple(grid)]


_GATHER = define(
    "gather",
    arguments=("data", "indices"),
    attrs=GatherAttrs,
    relation=_gather_relation,
    compute=lambda attrs, inputs, out_type: [topi.gather(inputs[0], attrs.axis, inputs[1])],
    reference=_gather_reference,
    gradient=lambda primal, grad: [
        call(
            "scatter_add",
            call("zeros_like", primal.args[0]),
            primal.args[1],
            grad,
            axis=primal.attrs.axis,
        ),
        call("zeros_like", primal.args[1]),
    ],
    kind=OpPattern.INJECTIVE,
    description="Elements selected along one axis by an index tensor.",
)


def gather(data: RelayExpr, axis: int, indices: RelayExpr) -> Call:
    """The element whose index on ``axis`` is in ``indices``, and whose others are those of the result.

    Negative indices count from the back; what is out of range then is held at the nearer end, or an error under the
    option ``relay.check_indices``.
    """
    return Call(_GATHER, (data, indices), GatherAttrs(axis))


@attributes
class GatherNDAttrs(OpAttrs):
    """How many leading dimensions go together, and the length of the index vectors where their type does not say."""

    batch_dims: int = 0
    index_rank: int | None = None


def vector_depth(indices: Shape, given: int | None, what: str) -> int:
    """The length of the index vectors along the first axis."""
    if not indices:
        raise RelationError(f"{what}: the indices need a first axis that holds the index vectors")
    depth = indices[0] if isinstance(indices[0], int) else given
    if depth is None:
        raise RelationError(f"{what}: the length of the index vectors is not known, give index_rank")
    return depth


def _gather_nd_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of gather_nd", "the indices")
    if found is None:
        return None
    data, places = found
    check_indices(places, "the indices of gather_nd")
    shape, indices = dims(data), dims(places)
    depth, batch = vector_depth(indices, attrs.index_rank, "gather_nd"), attrs.batch_dims
    if batch < 0 or batch + depth > len(shape) or batch > len(indices) - 1:
        raise RelationError(
            f"gather_nd: vectors of {depth} with batch_dims {batch} do not index {shape_text(shape)}"
        )
    for place in range(batch):
        same(shape[place], indices[place + 1], f"gather_nd: batch dimension {place}")
    result = (*indices[1:], *shape[batch + depth :])
    require_source(shape[batch : batch + depth], result, f"gather_nd: there is nothing in {data} to gather")
    return TensorType(result, data.dtype)


def _gather_nd_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, indices = inputs
    vectors = indices if attrs.index_rank is None else with_extent(indices, 0, attrs.index_rank)
    return [topi.gather_nd(data, vectors, attrs.batch_dims)]


def _gather_nd_reference(attrs: Any, data: Array, indices: Array) -> Array:
    batch = attrs.batch_dims
    vector = [_held(one, data.shape[batch + place]) for place, one in enumerate(indices)]
    grid = [
        np.arange(data.shape[place]).reshape([-1 if one == place else 1 for one in range(indices.ndim - 1)])
        for place in range(batch)
    ]
    return np.asarray(data[(*grid, *vector)])


def _gather_nd_gradient(primal: Any, grad: Any) -> list[Any]:
    data, indices = primal.args
    if primal.attrs.batch_dims != 0:
        raise OpNotImplemented("the gradient of gather_nd with batch_dims")
    return [
        call("scatter_nd", call("zeros_like", data), indices, grad, mode="add"),
        call("zeros_like", indices),
    ]


_GATHER_ND = define(
    "gather_nd",
    arguments=("data", "indices"),
    attrs=GatherNDAttrs,
    relation=_gather_nd_relation,
    compute=_gather_nd_compute,
    reference=_gather_nd_reference,
    gradient=_gather_nd_gradient,
    kind=OpPattern.INJECTIVE,
    description="Slices at index vectors, which run along the first axis of the indices.",
)


def gather_nd(
    data: RelayExpr, indices: RelayExpr, batch_dims: int = 0, index_rank: int | None = None
) -> Call:
    """Slices at index vectors, which run along the first axis of ``indices``.

    Negative indices count from the back; what is out of range then is held at the nearer end, or an error under the
    option ``relay.check_indices``.
    """
    return Call(_GATHER_ND, (data, indices), GatherNDAttrs(batch_dims, index_rank))


def _adv_index_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    fields = tuple_of_tensors(types[0], "the argument of adv_index")
    if fields is None:
        return None
    if len(fields) < 2 or len(fields) - 1 > len(fields[0].shape):
        raise RelationError(f"adv_index takes data and one index or more for its axes, not {types[0]}")
    data, *indices = fields
    shape: Shape = ()
    for one in indices:
        check_indices(one, "the indices of adv_index")
        shape = broadcast_shapes(shape, dims(one))
    chosen, others = dims(data)[: len(indices)], dims(data)[len(indices) :]
    require_source(chosen, (*shape, *others), f"adv_index: there is nothing in {data} to choose")
    return TensorType((*shape, *others), data.dtype)


def _adv_index_reference(attrs: Any, inputs: Sequence[Array]) -> Array:
    data, *indices = inputs
    return data[tuple(_held(one, data.shape[place]) for place, one in enumerate(indices))]


_ADV_INDEX = define(
    "adv_index",
    arguments=("inputs",),
    relation=_adv_index_relation,
    compute=lambda attrs, inputs, out_type: [topi.adv_index(inputs[0], list(inputs[1:]))],
    reference=_adv_index_reference,
    kind=OpPattern.INJECTIVE,
    description="NumPy's indexing by tensors.",
)


def adv_index(inputs: Any) -> Call:
    """``inputs[0][inputs[1:]]`` as NumPy indexes by tensors: they are broadcast and index the first axes.

    What is out of range is held at the nearer end, or an error under the option ``relay.check_indices``.
    """
    return Call(_ADV_INDEX, (as_tuple(inputs, "adv_index"),))


def _unravel_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of unravel_index", "the shape")
    if found is None:
        return None
    indices, shape = found
    check_indices(indices, "the indices of unravel_index")
    check_indices(shape, "the dimensions of unravel_index")
    if len(shape.shape) != 1:
        raise RelationError(f"unravel_index: the shape is a vector, not {shape}")
    return TensorType((constant_shape(shape, "the shape")[0], *dims(indices)), indices.dtype)


def _unravel_reference(attrs: Any, indices: Array, shape: Array) -> Array:
    made, rest = [], indices
    for extent in shape[::-1]:
        made.append(rest % extent)
        rest = rest // extent
    return np.stack(made[::-1]).astype(indices.dtype)


_UNRAVEL_INDEX = define(
    "unravel_index",
    arguments=("indices", "shape"),
    relation=_unravel_relation,
    compute=lambda attrs, inputs, out_type: [topi.unravel_index(inputs[0], inputs[1])],
    reference=_unravel_reference,
    kind=OpPattern.INJECTIVE,
    description="The index vectors of positions in row-major order.",
)


def unravel_index(indices: RelayExpr, shape: Any) -> Call:
    """The index vectors, along a first axis, of positions in a tensor of this shape in row-major order."""
    return Call(_UNRAVEL_INDEX, (indices, as_expression(shape)))
