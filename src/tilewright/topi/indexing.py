"""Elements chosen by indices that are data.

Indices outside of a tensor never read memory outside of it. Where nothing else is said, negative indices count from the
back, and what lies outside then is clamped to the nearer end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr, Select
from tilewright.support.errors import ExpressionError
from tilewright.target.generic_func import generic_func
from tilewright.te.broadcast_shape import broadcast_index, broadcast_shapes, known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.topi.arguments import as_int, check_integers, product, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.tag import BROADCAST, INJECTIVE
from tilewright.topi.utils import unravel_index as unravel_position


def _wide(index: PrimExpr) -> PrimExpr:
    """An index in a type that holds the extent of an axis as well."""
    return operators.cast("int32", index) if index.dtype.bits < 32 else index


def _held(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """The index clamped to the ends of an axis."""
    index = _wide(index)
    return operators.maximum(operators.minimum(index, extent - 1), operators.const(0, index.dtype))


def counted_from_front(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """A negative index counts from the back."""
    if index.dtype.is_uint:
        return index
    index, size = operators.match_types(_wide(index), extent)
    return Select(index < operators.const(0, index.dtype), index + size, index)


def safe_index(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index from data, brought into the axis."""
    return _held(counted_from_front(index, extent), extent)


_TAKE_MODES = ("clip", "wrap", "fast")


def take(
    a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> Tensor:
    """Slices along an axis at indices; without an axis, elements of the flattened tensor.

    ``clip`` clamps indices to the axis, ``wrap`` takes them modulo its length, ``fast`` trusts that they are valid. The
    first ``batch_dims`` dimensions of both tensors are the same and are matched.
    """
    check_integers("take", "indices", indices)
    if mode not in _TAKE_MODES:
        raise ExpressionError(f"take: mode is one of {', '.join(_TAKE_MODES)}, not {mode!r}")

    def inside(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
        if mode == "clip":
            return _held(index, extent)
        return operators.floormod(index, extent) if mode == "wrap" else index

    if axis is None:
        size = product(a.shape)
        return computed(
            indices.shape,
            lambda *i: a(*unravel_position(inside(indices(*i), size), a.shape)),
            name="T_take",
            tag=INJECTIVE,
        )
    position = real_axis("take", axis, len(a.shape))
    batch = as_int("take", "batch_dims", batch_dims)
    batch = batch + len(indices.shape) if batch < 0 else batch
    _check_batch("take", a, indices, batch, position)
    inner = indices.shape[batch:]
    shape = [*a.shape[:position], *inner, *a.shape[position + 1 :]]

    def element(*i: PrimExpr) -> PrimExpr:
        chosen = indices(*i[:batch], *i[position : position + len(inner)])
        return a(*i[:position], inside(chosen, a.shape[position]), *i[position + len(inner) :])

    return computed(shape, element, name="T_take", tag=INJECTIVE)


def _check_batch(name: str, a: Tensor, indices: Tensor, batch: int, limit: int) -> None:
    """The first dimensions of data and indices are the same."""
    if not 0 <= batch <= min(len(indices.shape), limit):
        raise ExpressionError(
            f"{name}: batch_dims {batch} is more than the dimensions of the indices {shape_text(indices.shape)} or "
            f"than those of {shape_text(a.shape)} before the axis"
        )
    for position in range(batch):
        if known_different(a.shape[position], indices.shape[position]):
            raise ExpressionError(
                f"{name}: {shape_text(a.shape)} and {shape_text(indices.shape)} differ in batch dimension {position}"
            )


@generic_func
def take_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """The call that a target wants in place of ``take``; None keeps it."""
    return None


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """The element whose index along ``axis`` is in ``indices`` and whose others are those of the result."""
    check_integers("gather", "indices", indices)
    position = real_axis("gather", axis, len(data.shape))
    if len(indices.shape) != len(data.shape):
        raise ExpressionError(
            f"gather: indices {shape_text(indices.shape)} have not as many dimensions as {shape_text(data.shape)}"
        )

    def element(*i: PrimExpr) -> PrimExpr:
        chosen = safe_index(indices(*i), data.shape[position])
        return data(*i[:position], chosen, *i[position + 1 :])

    return computed(indices.shape, element, name="T_gather", tag=INJECTIVE)


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Slices at index vectors, which are along the first axis of ``indices``."""
    check_integers("gather_nd", "indices", indices)
    if not indices.shape:
        raise ExpressionError("gather_nd: indices need a first axis that holds the index vectors")
    depth = as_int("gather_nd", "the first dimension of the indices", indices.shape[0])
    batch = as_int("gather_nd", "batch_dims", batch_dims)
    if batch < 0 or batch + depth > len(a.shape) or batch > len(indices.shape) - 1:
        raise ExpressionError(
            f"gather_nd: index vectors of {depth} with {batch} batch dimensions do not index {shape_text(a.shape)}"
        )
    places = len(indices.shape) - 1
    shape = [*indices.shape[1:], *a.shape[batch + depth :]]

    def element(*i: PrimExpr) -> PrimExpr:
        vector = [
            safe_index(indices(component, *i[:places]), a.shape[batch + component])
            for component in range(depth)
        ]
        return a(*i[:batch], *vector, *i[places:])

    return computed(shape, element, name="T_gather_nd", tag=INJECTIVE)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``data[indices]`` as NumPy indexes by tensors: they are broadcast together and index the first axes."""
    tensors = list(indices)
    if not 0 < len(tensors) <= len(data.shape):
        raise ExpressionError(f"adv_index: {len(tensors)} index tensors for {shape_text(data.shape)}")
    for tensor in tensors:
        check_integers("adv_index", "indices", tensor)
    meeting = broadcast_shapes("adv_index", *[tensor.shape for tensor in tensors])

    def element(*i: PrimExpr) -> PrimExpr:
        place = i[: len(meeting)]
        chosen = [
            safe_index(tensor(*broadcast_index(place, tensor.shape, meeting)), data.shape[axis])
            for axis, tensor in enumerate(tensors)
        ]
        return data(*chosen, *i[len(meeting) :])

    return computed([*meeting, *data.shape[len(tensors) :]], element, name="adv_index", tag=INJECTIVE)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Elements of ``x`` where the condition holds (is not zero), of ``y`` elsewhere; all three are broadcast."""
    shape = broadcast_shapes("where", condition.shape, x.shape, y.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        test = condition(*broadcast_index(i, condition.shape, shape))
        if not test.dtype.is_bool:
            test = operators.not_equal(test, operators.const(0, test.dtype))
        chosen, other = operators.match_types(
            x(*broadcast_index(i, x.shape, shape)), y(*broadcast_index(i, y.shape, shape))
        )
        return Select(test, chosen, other)

    return computed(shape, element, name="T_where", tag=BROADCAST)


def one_hot(
    indices: Tensor, on_value: ExprLike, off_value: ExprLike, depth: int, axis: int, dtype: str
) -> Tensor:
    """``on_value`` where the index along a new axis of size ``depth`` is that of ``indices``, else ``off_value``."""
    check_integers("one_hot", "indices", indices)
    position = real_axis("one_hot", axis, len(indices.shape) + 1)
    on, off = operators.cast(dtype, on_value), operators.cast(dtype, off_value)
    shape = [*indices.shape[:position], depth, *indices.shape[position:]]
    return computed(
        shape,
        lambda *i: Select(operators.equal(indices(*i[:position], *i[position + 1 :]), i[position]), on, off),
        name="T_one_hot",
        tag=INJECTIVE,
    )


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """The index vectors of positions in row-major order, along a first axis; ``shape`` is a vector of dimensions."""
    check_integers("unravel_index", "indices", indices)
    check_integers("unravel_index", "the shape", shape)
    if len(shape.shape) != 1:
        raise ExpressionError(f"unravel_index: the shape is a vector, not {shape_text(shape.shape)}")
    rank = as_int("unravel_index", "the length of the shape", shape.shape[0])

    def element(*i: PrimExpr) -> PrimExpr:
        rest = indices(*i[1:])
        found = operators.const(0, rest.dtype)
        for axis in range(rank - 1, -1, -1):
            extent = operators.cast(rest.dtype, shape(axis))
            found = Select(operators.equal(i[0], axis), operators.floormod(rest, extent), found)
            rest = operators.floordiv(rest, extent)
        return found

    return computed([rank, *indices.shape], element, name="T_unravel", tag=INJECTIVE)
