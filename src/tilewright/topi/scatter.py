"""Tensors with elements replaced, or combined with others, at indices that are data.

Negative indices count from the back. Updates whose index lies outside of the tensor are left out. Where an index occurs
twice, ``update`` keeps the last value, and the other modes combine all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.topi.arguments import as_int, check_integers, product, real_axis
from tilewright.topi.indexing import counted_from_front
from tilewright.topi.kernel import copy_unless_in_place, loop_kernel
from tilewright.topi.utils import ceil_div

Combine = Callable[[PrimExpr, PrimExpr], PrimExpr]

_BLOCK = 64
"""How many neighbouring columns are updated together."""

MODES: dict[str, Combine] = {
    "update": lambda old, new: new,
    "add": operators.add,
    "mul": operators.multiply,
    "min": operators.minimum,
    "max": operators.maximum,
}


def inside(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """True if an index is one of an axis."""
    return all_of(index >= operators.const(0, index.dtype), index < extent)


def combining(name: str, mode: str) -> Combine:
    """How a new value is combined with the old one."""
    if mode not in MODES:
        raise ExpressionError(f"{name}: mode is one of {', '.join(MODES)}, not {mode!r}")
    return MODES[mode]


def scatter_elements(
    name: str, data: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str
) -> Tensor:
    """``out[.., indices[.., i, ..], ..]`` combined with ``updates[.., i, ..]`` along an axis."""
    check_integers(name, "indices", indices)
    position = real_axis(name, axis, len(data.shape))
    combine = combining(name, mode)
    _check_updates(name, data, indices, updates)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        copy_unless_in_place(builder, ins[0], outs[0], product(data.shape))
        with ExitStack() as loops:
            place = _update_loops(builder, loops, indices.shape, position)
            given = builder.let("given", ins[1][place])
            index = builder.let("index", counted_from_front(given, data.shape[position]))
            with builder.if_scope(inside(index, data.shape[position])):
                target = [*place[:position], index, *place[position + 1 :]]
                outs[0][target] = combine(outs[0][target], ins[2][place])

    return loop_kernel(name, [data, indices, updates], [(data.shape, data.dtype)], body)[0]


def _update_loops(
    builder: IRBuilder, loops: ExitStack, shape: Sequence[PrimExpr], position: int
) -> list[PrimExpr]:
    """Open the loops over all updates, in the order in which they lie in memory.

    Equal indices must be processed in order along the axis only. Another axis, the first there is, runs in parallel;
    where it lies inside of the axis, in blocks, so that neighbours in memory stay together.
    """
    split = None if len(shape) == 1 else 1 if position == 0 else 0
    first, last = operators.const(0), operators.const(0)
    if split is not None:
        width = _BLOCK if split == len(shape) - 1 else 1
        blocks = ceil_div(shape[split], width)
        block = loops.enter_context(builder.for_range(0, blocks, name="block", kind="parallel"))
        first = block * width
        last = operators.minimum(first + width, shape[split])
    place: list[PrimExpr] = []
    for number, extent in enumerate(shape):
        begin, end = (first, last) if number == split else (operators.const(0), extent)
        place.append(loops.enter_context(builder.for_range(begin, end, name=f"i{number}")))
    return place


def _check_updates(name: str, data: Tensor, indices: Tensor, updates: Tensor) -> None:
    if data.dtype != updates.dtype:
        raise ExpressionError(f"{name}: updates of {updates.dtype} for data of {data.dtype}")
    ranks = {len(data.shape), len(indices.shape), len(updates.shape)}
    shapes = " and ".join(shape_text(tensor.shape) for tensor in (data, indices, updates))
    if len(ranks) != 1:
        raise ExpressionError(f"{name}: data, indices and updates {shapes} differ in dimensions")
    if any(known_different(one, other) for one, other in zip(indices.shape, updates.shape, strict=True)):
        raise ExpressionError(f"{name}: indices and updates of {shapes} differ in shape")


def scatter(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """The data with ``updates`` in the places that ``indices`` names along an axis."""
    return scatter_elements("scatter", data, indices, updates, axis, "update")


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """The data with slices replaced (``update``) or combined with others (``add``, ``mul``, ``min``, ``max``) at index
    vectors.

    The vectors are along the first axis of ``indices``; ``updates`` has the shape of the rest of ``indices`` followed
    by that of a slice.
    """
    check_integers("scatter_nd", "indices", indices)
    combine = combining("scatter_nd", mode)
    if not indices.shape:
        raise ExpressionError("scatter_nd: indices need a first axis that holds the index vectors")
    depth = as_int("scatter_nd", "the first dimension of the indices", indices.shape[0])
    if depth > len(data.shape):
        raise ExpressionError(f"scatter_nd: index vectors of {depth} do not index {shape_text(data.shape)}")
    wanted = [*indices.shape[1:], *data.shape[depth:]]
    matches = len(wanted) == len(updates.shape) and not any(
        known_different(one, other) for one, other in zip(wanted, updates.shape, strict=True)
    )
    if not matches or data.dtype != updates.dtype:
        raise ExpressionError(
            f"scatter_nd: updates must have the shape {shape_text(wanted)} and the type {data.dtype}, not "
            f"{shape_text(updates.shape)} and {updates.dtype}"
        )
    places, slice_size = product(indices.shape[1:]), product(data.shape[depth:])

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        copy_unless_in_place(builder, ins[0], outs[0], product(data.shape))
        with builder.for_range(0, places, name="place") as place:
            offset: PrimExpr = operators.const(0)
            valid: PrimExpr = operators.const(True)
            for component in range(depth):
                extent = data.shape[component]
                given = builder.let("given", ins[1][places * component + place])
                index = builder.let(f"index{component}", counted_from_front(given, extent))
                valid = operators.logical_and(valid, inside(index, extent))
                offset = offset * extent + index
            with builder.if_scope(valid):
                start = builder.let("start", offset * slice_size)
                with builder.for_range(0, slice_size, name="element") as j:
                    old = outs[0][start + j]
                    outs[0][start + j] = combine(old, ins[2][place * slice_size + j])

    return loop_kernel("scatter_nd", [data, indices, updates], [(data.shape, data.dtype)], body)[0]


def scatter_add(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """The data with ``updates`` added in the places that ``indices`` names along an axis."""
    return scatter_elements("scatter_add", data, indices, updates, axis, "add")
