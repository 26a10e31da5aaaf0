"""Tensors in other shapes and orders: every element is one element of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Select
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, known_different, same_extent, shape_text
from tilewright.te.tensor import Tensor
from tilewright.topi.arguments import as_int, check_integers, product, real_axes, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.tag import BROADCAST, INJECTIVE
from tilewright.topi.utils import ravel_index, simplify, unravel_index


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """``num_newaxis`` dimensions of 1 put before ``axis``; a negative axis counts from the back of the result."""
    count = as_int("expand_dims", "num_newaxis", num_newaxis)
    if count < 0:
        raise ExpressionError(f"expand_dims: num_newaxis is {count}, it cannot be negative")
    position = real_axis("expand_dims", axis, len(a.shape) + 1)
    shape = (*a.shape[:position], *[1] * count, *a.shape[position:])
    return computed(
        shape, lambda *i: a(*i[:position], *i[position + count :]), name="T_expand_dims", tag=BROADCAST
    )


def expand_like(a: Tensor, shape_like: Tensor, axis: int | Sequence[int]) -> Tensor:
    """The tensor repeated along new axes, which are at ``axis`` in the shape of ``shape_like``."""
    rank = len(shape_like.shape)
    if len(a.shape) == rank:
        new: list[int] = []
    else:
        new = real_axes("expand_like", axis, rank)
    if len(a.shape) + len(new) != rank:
        raise ExpressionError(
            f"expand_like: {len(a.shape)} dimensions and {len(new)} new ones do not make the {rank} of "
            f"{shape_text(shape_like.shape)}"
        )
    kept = [position for position in range(rank) if position not in new]
    return computed(
        shape_like.shape,
        lambda *i: a(*[i[position] for position in kept]),
        name="T_expand_like",
        tag=BROADCAST,
    )


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in another order: that of ``axes``, reversed by default."""
    rank = len(a.shape)
    if axes is None or (len(axes) == 0 and rank > 0):
        order = list(range(rank))[::-1]
    else:
        order = [real_axis("transpose", axis, rank) for axis in axes]
        if sorted(order) != list(range(rank)):
            raise ExpressionError(f"transpose: {list(axes)} is not a permutation of the {rank} axes")
    place = [order.index(position) for position in range(rank)]
    return computed(
        [a.shape[axis] for axis in order],
        lambda *i: a(*[i[position] for position in place]),
        name="T_transpose",
        tag=INJECTIVE,
    )


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """The elements along an axis from the last to the first."""
    position = real_axis("flip", axis, len(a.shape))
    extent = a.shape[position]
    return computed(
        a.shape,
        lambda *i: a(*i[:position], extent - 1 - i[position], *i[position + 1 :]),
        name="T_flip",
        tag=INJECTIVE,
    )


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """The first ``seq_lengths[batch]`` elements along ``seq_axis`` reversed, the others unchanged."""
    rank = len(a.shape)
    sequence = real_axis("reverse_sequence", seq_axis, rank)
    batch = real_axis("reverse_sequence", batch_axis, rank)
    check_integers("reverse_sequence", "seq_lengths", seq_lengths)
    if len(seq_lengths.shape) != 1 or known_different(seq_lengths.shape[0], a.shape[batch]):
        raise ExpressionError(
            f"reverse_sequence: seq_lengths of shape {shape_text(seq_lengths.shape)} is not one length for each of "
            f"the {a.shape[batch]} elements of the batch axis"
        )

    def element(*i: PrimExpr) -> PrimExpr:
        index = i[sequence]
        extent = a.shape[sequence]
        given = operators.cast(index.dtype, seq_lengths(i[batch]))
        length = operators.maximum(operators.minimum(given, extent), 0)
        read = Select(index < length, length - 1 - index, index)
        return a(*i[:sequence], read, *i[sequence + 1 :])

    return computed(a.shape, element, name="T_reverse_sequence", tag=INJECTIVE)


Group = tuple[list[int], list[int]]


def _reshape_groups(old: Sequence[PrimExpr], new: Sequence[PrimExpr]) -> list[Group]:
    """Runs of dimensions of both shapes with the same number of elements.

    Indices then are divided within a run only, and an unchanged dimension needs no division at all. Symbolic
    dimensions close a run only against the same dimension; where a run finds no end, runs are closed from the right,
    and one takes what is left between.
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(old) and j < len(new):
        found = _next_run(old[i:], new[j:])
        if found is None:
            break
        groups.append((list(range(i, i + found[0])), list(range(j, j + found[1]))))
        i, j = i + found[0], j + found[1]
    last: list[Group] = []
    end, new_end = len(old), len(new)
    while i < end and j < new_end:
        found = _next_run(old[i:end][::-1], new[j:new_end][::-1])
        if found is None:
            break
        last.insert(0, (list(range(end - found[0], end)), list(range(new_end - found[1], new_end))))
        end, new_end = end - found[0], new_end - found[1]
    if i < end or j < new_end:
        groups.append((list(range(i, end)), list(range(j, new_end))))
    return groups + last


def _next_run(old: Sequence[PrimExpr], new: Sequence[PrimExpr]) -> tuple[int, int] | None:
    """How many leading dimensions of each shape have the same number of elements; None if that cannot be told."""
    counts = [1, 1]
    size, wanted = old[0], new[0]
    while not same_extent(size, wanted):
        if not (isinstance(size, IntImm) and isinstance(wanted, IntImm)):
            return None
        if size.value < wanted.value and counts[0] < len(old):
            size = size * old[counts[0]]
            counts[0] += 1
        elif size.value > wanted.value and counts[1] < len(new):
            wanted = wanted * new[counts[1]]
            counts[1] += 1
        else:
            return None
    return counts[0], counts[1]


def _resolve_minus_one(name: str, old: Sequence[PrimExpr], new: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The new shape, with the one dimension of -1 that it may have computed from the others."""
    extents = list(new)
    unknown = [
        position for position, extent in enumerate(extents) if isinstance(extent, IntImm) and extent.value < 0
    ]
    if not unknown:
        return extents
    if len(unknown) > 1 or extents[unknown[0]].value != -1:  # type: ignore[attr-defined]
        raise ExpressionError(f"{name}: {shape_text(new)} is not a shape; one dimension may be -1")
    rest = product([extent for position, extent in enumerate(extents) if position != unknown[0]])
    if isinstance(rest, IntImm) and rest.value == 0:
        raise ExpressionError(
            f"{name}: -1 in {shape_text(new)} stands for any number, as another dimension is 0"
        )
    extents[unknown[0]] = simplify(operators.floordiv(product(old), rest))
    return extents


def reshape(a: Tensor, newshape: ExprLike | Sequence[ExprLike]) -> Tensor:
    """The elements in row-major order in another shape; one dimension may be -1, for what the others leave."""
    shape = _resolve_minus_one("reshape", a.shape, as_extents(newshape))
    if known_different(simplify(product(a.shape)), simplify(product(shape))):
        raise ExpressionError(f"reshape: {shape_text(a.shape)} and {shape_text(shape)} differ in size")
    if any(isinstance(extent, IntImm) and extent.value == 0 for extent in (*shape, *a.shape)):
        return computed(shape, lambda *i: operators.const(0, a.dtype), name="T_reshape", tag=INJECTIVE)
    groups = _reshape_groups(a.shape, shape)

    def element(*i: PrimExpr) -> PrimExpr:
        index: list[Any] = []
        for olds, news in groups:
            flat = ravel_index([i[position] for position in news], [shape[position] for position in news])
            index += unravel_index(flat, [a.shape[position] for position in olds])
        return a(*index)

    return computed(shape, element, name="T_reshape", tag=INJECTIVE)


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the dimensions of 1 at ``axis``, or without any."""
    if axis is None:
        dropped = [
            position
            for position, extent in enumerate(a.shape)
            if isinstance(extent, IntImm) and extent.value == 1
        ]
    else:
        dropped = real_axes("squeeze", axis, len(a.shape))
    for position in dropped:
        if known_different(a.shape[position], operators.const(1)):
            raise ExpressionError(f"squeeze: axis {position} of {shape_text(a.shape)} is not 1")
    shape = [extent for position, extent in enumerate(a.shape) if position not in dropped]

    def element(*i: PrimExpr) -> PrimExpr:
        kept = iter(i)
        return a(*[0 if position in dropped else next(kept) for position in range(len(a.shape))])

    return computed(shape, element, name="T_squeeze", tag=INJECTIVE)


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """Every element ``repeats`` times in a row along an axis."""
    position = real_axis("repeat", axis, len(a.shape))
    count = as_int("repeat", "the number of repeats", repeats)
    if count < 0:
        raise ExpressionError(f"repeat: the number of repeats is {count}, it cannot be negative")
    shape = [*a.shape[:position], a.shape[position] * count, *a.shape[position + 1 :]]
    if count == 0:
        return computed(shape, lambda *i: operators.const(0, a.dtype), name="T_repeat", tag=BROADCAST)
    return computed(
        shape,
        lambda *i: a(*i[:position], operators.floordiv(i[position], count), *i[position + 1 :]),
        name="T_repeat",
        tag=BROADCAST,
    )


def tile(a: Tensor, reps: int | Sequence[ExprLike]) -> Tensor:
    """The whole tensor repeated ``reps`` times along each axis; the shorter of both shapes is filled with 1."""
    times = as_extents(reps)
    rank = max(len(times), len(a.shape))
    one = operators.const(1)
    times = (one,) * (rank - len(times)) + times
    old = (one,) * (rank - len(a.shape)) + tuple(a.shape)
    return _tiled(a, [extent * count for extent, count in zip(old, times, strict=True)], "T_tile")


def dyn_tile(a: Tensor, new_shape: Sequence[ExprLike], rdim: int) -> Tensor:
    """The whole tensor repeated until it fills ``new_shape``; ``rdim`` is the number of axes that were repeated."""
    shape = as_extents(new_shape)
    if len(shape) < max(len(a.shape), rdim):
        raise ExpressionError(f"dyn_tile: {shape_text(a.shape)} does not repeat to {shape_text(shape)}")
    return _tiled(a, shape, "T_dyn_tile")


def _tiled(a: Tensor, shape: Sequence[PrimExpr], name: str) -> Tensor:
    if any(isinstance(extent, IntImm) and extent.value == 0 for extent in shape):
        return computed(shape, lambda *i: operators.const(0, a.dtype), name=name, tag=BROADCAST)
    missing = len(shape) - len(a.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        return a(
            *[
                index if same_extent(extent, whole) else operators.floormod(index, extent)
                for index, extent, whole in zip(i[missing:], a.shape, shape[missing:], strict=True)
            ]
        )

    return computed(shape, element, name=name, tag=BROADCAST)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The shape as a vector."""
    extents = [operators.cast(dtype, extent) for extent in array.shape]

    def element(i: PrimExpr) -> PrimExpr:
        if not extents:
            return operators.const(0, dtype)
        chosen = extents[-1]
        for position in range(len(extents) - 2, -1, -1):
            chosen = Select(operators.equal(i, position), extents[position], chosen)
        return chosen

    return computed((len(extents),), element, name="T_shape", tag=INJECTIVE)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, as a tensor without dimensions."""
    return computed(
        (), lambda *i: operators.cast(dtype, product(array.shape)), name="T_ndarray_size", tag=INJECTIVE
    )
