"""Operators that read elements at places that are data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import (
    Size,
    as_scalar,
    broadcast_to,
    multiplied,
    reshaped,
    size_of,
    sizes_of,
)
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.registry import converter


def from_front(node: TorchNode, indices: Expr, size: Size) -> Expr:
    """Indices of which the negative ones count from the back, as such that count from the front, in int64."""
    places = indices if node.dtype(indices) == "int64" else relay.cast(indices, "int64")
    value = node.value(places)
    if value is not None and (isinstance(size, int) or bool((value >= 0).all())):
        if bool((value >= 0).all()):
            return places
        return const(np.where(value < 0, value + size, value).astype("int64"))
    return relay.where(relay.less(places, const(0, "int64")), relay.add(places, as_scalar(size)), places)


def _masks_as_places(node: TorchNode, indices: list[Expr | None]) -> list[Expr | None]:
    """Indices in which masks are replaced by the places, along each of their axes, at which they hold."""
    made: list[Expr | None] = []
    for index in indices:
        if index is None or node.dtype(index) not in ("bool", "uint8"):
            made.append(index)
            continue
        found = relay.argwhere(index if node.rank(index) else relay.reshape(index, (1,)))
        count = node.rank(index)
        if count == 1:
            made.append(relay.cast(relay.squeeze(found, axis=[1]), "int64"))
            continue
        made += [
            relay.cast(relay.take(found, const(place, "int64"), axis=1), "int64") for place in range(count)
        ]
    return made


def index_places(
    node: TorchNode, data: Expr, indices: list[Expr | None]
) -> tuple[list[int], list[Expr], int]:
    """The axes that are indexed, their indices (masks resolved), and where the result has the axes of the indices."""
    resolved = _masks_as_places(node, indices)
    axes = [axis for axis, index in enumerate(resolved) if index is not None]
    given = [
        from_front(node, index, size_of(node, data, axis))
        for axis, index in enumerate(resolved)
        if index is not None
    ]
    together = axes == list(range(axes[0], axes[0] + len(axes))) if axes else True
    return axes, given, axes[0] if axes and together else 0


@converter("aten::index", "aten::_unsafe_index")
def index(node: TorchNode, input: Expr, indices: list[Expr | None]) -> Expr:
    """Elements at places on several axes at once: indices broadcast, and their axes come where the first was, or to
    the front if other axes are in between."""
    axes, given, place = index_places(node, input, indices)
    if not axes:
        return input
    if len(axes) == 1:
        return relay.take(input, given[0], axis=axes[0])
    rank = node.rank(input)
    rest = [axis for axis in range(rank) if axis not in axes]
    order = axes + rest
    moved = input if order == list(range(rank)) else relay.transpose(input, order)
    found = relay.adv_index([moved, *given])
    if place == 0:
        return found
    depth = max(node.rank(one) for one in given)
    # The axes of the indices are first now, and the others follow.
    back = [*range(depth, depth + place), *range(depth), *range(depth + place, node.rank(found))]
    return relay.transpose(found, back)


@converter("aten::_unsafe_masked_index")
def unsafe_masked_index(
    node: TorchNode, input: Expr, mask: Expr, indices: list[Expr | None], fill: Any
) -> Expr:
    """Elements at places, and a number where a mask does not hold; there, places may be anywhere."""
    safe: list[Expr | None] = []
    for axis, one in enumerate(indices):
        if one is None:
            safe.append(None)
            continue
        last = relay.subtract(as_scalar(size_of(node, input, axis)), const(1, "int64"))
        safe.append(relay.maximum(relay.minimum(relay.cast(one, "int64"), last), const(0, "int64")))
    found = index(node, input, safe)
    return relay.where(mask, found, node.cast(fill, node.dtype(found)))


@converter("aten::index_select")
def index_select(node: TorchNode, input: Expr, dim: int, index: Expr) -> Expr:
    """Slices along an axis."""
    if not node.rank(input):
        return input
    places = index if node.rank(index) else relay.reshape(index, (1,))
    axis = node.axis_of(dim, node.rank(input))
    return relay.take(input, relay.cast(places, "int64"), axis=axis)


@converter("aten::gather")
def gather(node: TorchNode, input: Expr, dim: int, index: Expr, sparse_grad: bool = False) -> Expr:
    """The elements whose index on an axis is given."""
    if not node.rank(input):
        return relay.reshape(input, (1,)) if node.rank(index) else input
    if 0 in node.shape(index):
        return relay.zeros(node.static_shape(index), node.dtype(input))
    if not node.rank(index):
        flat = gather(node, input, dim, relay.reshape(index, (1,) * node.rank(input)))
        return relay.reshape(flat, ())
    return relay.gather(input, node.axis_of(dim, node.rank(input)), index)


@converter("aten::take_along_dim")
def take_along_dim(node: TorchNode, input: Expr, indices: Expr, dim: int | None = None) -> Expr:
    """The elements whose index on an axis is given; other axes are broadcast."""
    if dim is None:
        return take(node, input, reshaped(node, indices, [-1]))
    axis, rank = node.axis_of(dim, node.rank(input)), node.rank(input)
    of_data, of_places = sizes_of(node, input), sizes_of(node, indices)
    wide_data, wide_places = list(of_data), list(of_places)
    for place in range(rank):
        if place == axis:
            continue
        one, two = of_data[place], of_places[place]
        if isinstance(one, int) and one == 1:
            wide_data[place] = two
        elif isinstance(two, int) and two == 1:
            wide_places[place] = one
    return relay.gather(broadcast_to(node, input, wide_data), axis, broadcast_to(node, indices, wide_places))


@converter("aten::take")
def take(node: TorchNode, input: Expr, index: Expr) -> Expr:
    """Elements of the flattened tensor."""
    count = multiplied(sizes_of(node, input))
    flat = reshaped(node, input, [-1])
    return relay.take(flat, from_front(node, index, count), axis=0)


@converter("aten::embedding")
def embedding(
    node: TorchNode,
    weight: Expr,
    indices: Expr,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Expr:
    """Rows of a table."""
    return relay.take(weight, indices, axis=0)


@converter("aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(
    node: TorchNode,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Expr | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> list[Expr]:
    """Sums, means or greatest elements of rows of a table, for bags of indices that begin at offsets."""
    bags = node.known_size(offsets, 0) - (1 if include_last_offset else 0)
    count = size_of(node, indices, 0)
    # Number i is in the bag whose offset is the last that is not above i.
    numbers = relay.arange(const(0, "int64"), as_scalar(count), const(1, "int64"), "int64")
    starts = relay.cast(offsets, "int64")
    bag = relay.subtract(relay.searchsorted(starts, numbers, right=True, dtype="int64"), const(1, "int64"))
    rows = relay.take(weight, indices, axis=0)
    dtype = node.dtype(weight)
    kept: Expr | None = None
    if padding_idx is not None and padding_idx >= 0:
        kept = relay.not_equal(indices, node.constant(padding_idx, indices))
    if per_sample_weights is not None:
        rows = relay.multiply(rows, relay.expand_dims(per_sample_weights, 1))
    members = relay.equal(relay.expand_dims(const(np.arange(bags), "int64"), 1), relay.expand_dims(bag, 0))
    if kept is not None:
        members = relay.logical_and(members, relay.expand_dims(kept, 0))
    counted = relay.sum(relay.cast(members, "int64"), axis=[1])
    if mode == 2:
        shown = relay.where(
            relay.expand_dims(members, 2), relay.expand_dims(rows, 0), node.constant(-np.inf, dtype)
        )
        found = relay.max(shown, axis=[1])
        empty = relay.expand_dims(relay.equal(counted, const(0, "int64")), 1)
        found = relay.where(empty, node.constant(0, dtype), found)
    else:
        found = relay.nn.matmul(relay.cast(members, dtype), rows)
        if mode == 1:
            divisor = relay.maximum(counted, const(1, "int64"))
            found = relay.divide(found, relay.cast(relay.expand_dims(divisor, 1), dtype))
    nothing = relay.zeros((0,), "int64")
    return [found, bag, counted, nothing]


# Masks


@converter("aten::masked_fill")
def masked_fill(node: TorchNode, input: Expr, mask: Expr, value: Operand) -> Expr:
    """A number where a mask holds."""
    dtype = node.dtype(input)
    number = node.cast(value, dtype)
    return relay.where(node.cast(mask, "bool"), number, input)


@converter("aten::masked_select")
def masked_select(node: TorchNode, input: Expr, mask: Expr) -> Expr:
    """The elements where a mask holds, in a row."""
    from_data, from_mask = _same_shape(node, input, mask)
    places = relay.argwhere(reshaped(node, from_mask, [-1]))
    return relay.take(reshaped(node, from_data, [-1]), relay.squeeze(places, axis=[1]), axis=0)


def _same_shape(node: TorchNode, one: Expr, other: Expr) -> tuple[Expr, Expr]:
    """Two tensors in the shape of their broadcast."""
    if node.shape(one) == node.shape(other):
        return one, other
    if node.rank(one) < node.rank(other):
        two, wide = _same_shape(node, other, one)
        return wide, two
    sizes = sizes_of(node, one)
    lead = node.rank(one) - node.rank(other)
    for axis, size in enumerate(sizes_of(node, other)):
        have = sizes[lead + axis]
        if isinstance(have, int) and have == 1:
            sizes[lead + axis] = size
    return broadcast_to(node, one, sizes), broadcast_to(node, other, sizes)


@converter("aten::nonzero", "aten::argwhere")
def nonzero(node: TorchNode, input: Expr) -> Expr:
    """The places of the elements that are not zero: a row for each."""
    if not node.rank(input):
        flat = relay.argwhere(relay.reshape(node.cast(input, "bool"), (1,)))
        return relay.cast(relay.strided_slice(flat, [0], [0], axes=[1]), "int64")
    return relay.cast(relay.argwhere(input), "int64")


@converter("aten::nonzero_numpy", "aten::where")
def nonzero_numpy(node: TorchNode, input: Expr | None = None, condition: Expr | None = None) -> list[Expr]:
    """The same places: a vector for each axis."""
    given = input if input is not None else condition
    assert given is not None
    if not node.rank(given):
        given = relay.reshape(given, (1,))
    found = nonzero(node, given)
    return [relay.take(found, const(axis, "int64"), axis=1) for axis in range(node.rank(given))]


# Repetition


@converter("aten::repeat")
def repeat(node: TorchNode, input: Expr, repeats: Any) -> Expr:
    """The whole tensor repeated along each axis, and along new leading ones."""
    lead = len(repeats) - node.rank(input)
    data = reshaped(node, input, [1] * lead + sizes_of(node, input)) if lead else input
    return tiled(node, data, list(repeats))


def tiled(node: TorchNode, data: Expr, times: list[Size]) -> Expr:
    """The whole tensor so many times along each axis."""
    if not times or all(isinstance(time, int) and time == 1 for time in times):
        return data
    if any(isinstance(time, int) and time == 0 for time in times):
        sizes = [
            0 if isinstance(time, int) and time == 0 else multiplied([size, time])
            for size, time in zip(sizes_of(node, data), times, strict=True)
        ]
        return relay.zeros(tuple(node.known_ints(sizes, "the sizes")), node.dtype(data))
    if all(isinstance(time, int) for time in times):
        return relay.tile(data, times)
    # Each axis as a new one of copies and itself, which are then one.
    sizes = sizes_of(node, data)
    split: list[Size] = []
    copies: list[Size] = []
    for size, time in zip(sizes, times, strict=True):
        split += [1, size]
        copies += [time, size]
    made = broadcast_to(node, reshaped(node, data, split), copies)
    return reshaped(node, made, [multiplied([size, time]) for size, time in zip(sizes, times, strict=True)])


@converter("aten::tile")
def tile(node: TorchNode, input: Expr, dims: Any) -> Expr:
    """The whole tensor repeated; axes that are not mentioned are not."""
    times = [1] * (node.rank(input) - len(dims)) + list(dims)
    return repeat(node, input, times)


@converter(
    "aten::repeat_interleave.self_int", "aten::repeat_interleave.self_Tensor", "aten::repeat_interleave"
)
def repeat_interleave(
    node: TorchNode,
    input: Expr | None = None,
    repeats: Any = None,
    dim: int | None = None,
    output_size: Any = None,
) -> Expr:
    """Each slice along an axis repeated, once or more."""
    data, axis = input, dim
    if data is None:
        data = relay.arange(
            const(0, "int64"), as_scalar(size_of(node, repeats, 0)), const(1, "int64"), "int64"
        )
    if axis is None:
        data, axis = reshaped(node, data, [-1]), 0
    axis = node.axis_of(axis, node.rank(data))
    if isinstance(repeats, Expr) and (node.rank(repeats) == 0 or node.shape(repeats) == (1,)):
        value = node.value(repeats)
        repeats = int(value.reshape(-1)[0]) if value is not None else relay.reshape(repeats, ())
        if isinstance(repeats, Expr) and node.dtype(repeats) != "int64":
            repeats = relay.cast(repeats, "int64")
    if isinstance(repeats, int):
        return relay.repeat(data, repeats, axis)
    if node.rank(repeats) == 0:
        sizes = sizes_of(node, data)
        split = reshaped(node, data, [*sizes[: axis + 1], 1, *sizes[axis + 1 :]])
        wide = broadcast_to(node, split, [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]])
        return reshaped(node, wide, [*sizes[:axis], multiplied([sizes[axis], repeats]), *sizes[axis + 1 :]])
    counts = node.value(repeats)
    if counts is not None:
        places = const(np.repeat(np.arange(len(counts)), counts).astype("int64"))
        return relay.take(data, places, axis=axis)
    # Place i comes from the first slice up to which more than i were written.
    ends = relay.cumsum(relay.cast(repeats, "int64"), 0)
    total = relay.take(ends, relay.subtract(as_scalar(size_of(node, ends, 0)), const(1, "int64")), axis=0)
    numbers = relay.arange(const(0, "int64"), total, const(1, "int64"), "int64")
    return relay.take(data, relay.searchsorted(ends, numbers, right=True, dtype="int64"), axis=axis)


@converter("aten::flip")
def flip(node: TorchNode, input: Expr, dims: Any) -> Expr:
    """Axes the other way around."""
    made = input
    for axis in node.axes_of(dims, node.rank(input)) if dims else []:
        made = relay.reverse(made, axis) if node.rank(input) else made
    return made


@converter("aten::fliplr", "aten::flipud")
def flip_sides(node: TorchNode, input: Expr) -> Expr:
    """Columns or rows the other way around."""
    return relay.reverse(input, 1 if node.op_type.endswith("fliplr") else 0)


@converter("aten::roll")
def roll(node: TorchNode, input: Expr, shifts: Any, dims: Any = ()) -> Expr:
    """Elements moved along axes; those that leave come in again at the other end."""
    steps = [shifts] if isinstance(shifts, int | Expr) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if not axes:
        flat = roll(node, reshaped(node, input, [-1]), steps, [0])
        return reshaped(node, flat, sizes_of(node, input))
    made = input
    for step, given in zip(steps, axes, strict=True):
        axis = node.axis_of(given, node.rank(input))
        size = node.shape(made)[axis]
        if size == 0:
            continue
        if size is not None and isinstance(step, int):
            cut = -step % size
            if not cut:
                continue
            last = relay.strided_slice(made, [cut], [size], [1], axes=[axis])
            first = relay.strided_slice(made, [0], [cut], [1], axes=[axis])
            made = relay.concatenate([last, first], axis)
            continue
        whole = as_scalar(size_of(node, made, axis))
        places = relay.arange(const(0, "int64"), whole, const(1, "int64"), "int64")
        moved = relay.floor_mod(relay.subtract(places, as_scalar(step)), whole)
        made = relay.take(made, moved, axis=axis)
    return made


@converter("aten::rot90")
def rot90(node: TorchNode, input: Expr, k: int = 1, dims: Any = (0, 1)) -> Expr:
    """Quarter turns in a plane."""
    rank = node.rank(input)
    one, two = (node.axis_of(axis, rank) for axis in dims)
    order = list(range(rank))
    order[one], order[two] = two, one
    turns = k % 4
    if turns == 0:
        return input
    if turns == 2:
        return relay.reverse(relay.reverse(input, one), two)
    if turns == 1:
        return relay.transpose(relay.reverse(input, two), order)
    return relay.reverse(relay.transpose(input, order), two)
