"""Operators that write elements at places that are data, or into parts of a tensor."""

from __future__ import annotations

from typing import Any, Final

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
from tilewright.relay.frontend.torch.ops.creation import positions
from tilewright.relay.frontend.torch.ops.indexing import from_front, index_places
from tilewright.relay.frontend.torch.ops.matrices import common_sizes
from tilewright.relay.frontend.torch.ops.views import LAST, part
from tilewright.relay.frontend.torch.registry import converter

_MODES: Final = {
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
    "mean": "add",
}


def _at_places(node: TorchNode, index: Expr, axis: int) -> Expr:
    """Index vectors, along the first axis, of elements whose index on one axis is given."""
    sizes = sizes_of(node, index)
    grid: list[Expr] = []
    for place in range(len(sizes)):
        if place == axis:
            grid.append(relay.cast(index, "int64"))
            continue
        line = relay.reshape(
            positions(node, sizes[place]), [-1 if one == place else 1 for one in range(len(sizes))]
        )
        grid.append(broadcast_to(node, line, sizes))
    return relay.stack(grid, 0)


def _cut_to(node: TorchNode, source: Expr, index: Expr) -> Expr:
    """The part of the source that has indices: a source may be larger."""
    made = source
    for axis, (have, wanted) in enumerate(zip(node.shape(source), node.shape(index), strict=True)):
        if have is None or wanted is None or have != wanted:
            size = size_of(node, index, axis)
            if have is None and wanted is None:
                continue
            made = part(node, made, axis, 0, size)
    return made


def _scattered(node: TorchNode, input: Expr, dim: int, index: Expr, source: Expr, mode: str) -> Expr:
    """Elements written at given indices on an axis, or combined with what is there."""
    if not node.rank(input):
        data, places = relay.reshape(input, (1,)), reshaped(node, index, [1])
        return relay.reshape(_scattered(node, data, 0, places, reshaped(node, source, [1]), mode), ())
    if not node.rank(index):
        index, source = relay.reshape(index, (1,)), reshaped(node, source, [1])
    axis = node.axis_of(dim, node.rank(input))
    if 0 in node.shape(index):
        return input
    values = _cut_to(node, node.cast(source, node.dtype(input)), index)
    if mode == "update":
        return relay.scatter(input, index, values, axis)
    if mode == "add" and node.dtype(input) != "bool":
        return relay.scatter_add(input, index, values, axis)
    return relay.scatter_nd(input, _at_places(node, index, axis), values, mode)


@converter("aten::scatter")
def scatter(
    node: TorchNode,
    input: Expr,
    dim: int,
    index: Expr,
    src: Expr | None = None,
    value: Operand | None = None,
    reduce: str | None = None,
) -> Expr:
    """Elements of a tensor, or one number, written at given indices on an axis."""
    given = src
    if given is None:
        assert value is not None
        number = node.cast(value, node.dtype(input))
        given = broadcast_to(node, number, sizes_of(node, index))
    elif not isinstance(given, Expr) or (not node.rank(given) and node.rank(index)):
        given = broadcast_to(node, node.cast(given, node.dtype(input)), sizes_of(node, index))
    return _scattered(node, input, dim, index, given, "update" if reduce is None else _mode(node, reduce))


@converter("aten::scatter_add")
def scatter_add(node: TorchNode, input: Expr, dim: int, index: Expr, src: Expr) -> Expr:
    """Elements added at given indices on an axis."""
    return _scattered(node, input, dim, index, src, "add")


def _mode(node: TorchNode, reduce: str) -> str:
    if reduce not in _MODES:
        raise node.fail(f"the reduction is one of {', '.join(_MODES)}, not {reduce!r}")
    return _MODES[reduce]


def _neutral(node: TorchNode, reduce: str, dtype: str) -> Any:
    if reduce in ("sum", "mean", "add"):
        return 0
    if reduce in ("prod", "multiply"):
        return 1
    if dtype.startswith(("float", "bfloat")):
        return -np.inf if reduce == "amax" else np.inf
    if dtype == "bool":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


@converter("aten::scatter_reduce")
def scatter_reduce(
    node: TorchNode, input: Expr, dim: int, index: Expr, src: Expr, reduce: str, include_self: bool = True
) -> Expr:
    """Elements combined at given indices on an axis; what was there takes part or does not."""
    dtype = node.dtype(input)
    mode = _mode(node, reduce)
    if not include_self:
        # Where something is written, what was there becomes the neutral element.
        sizes = sizes_of(node, index)
        neutral = broadcast_to(node, node.cast(_neutral(node, reduce, dtype), dtype), sizes)
        input = _scattered(node, input, dim, index, neutral, "update")
    found = _scattered(node, input, dim, index, src, mode)
    if reduce != "mean":
        return found
    start = relay.ones_like(input) if include_self else relay.zeros_like(input)
    ones = broadcast_to(node, node.constant(1, dtype), sizes_of(node, index))
    counts = _scattered(node, start, dim, index, ones, "add")
    counts = relay.maximum(counts, node.constant(1, dtype))
    # Means of integers are rounded down.
    return relay.floor_divide(found, counts) if node.is_integral(found) else relay.divide(found, counts)


# Several axes


@converter("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(
    node: TorchNode,
    input: Expr,
    indices: list[Expr | None],
    values: Expr,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Expr:
    """Elements at places on several axes replaced, or added to."""
    dtype = node.dtype(input)
    given = node.cast(values, dtype)
    single = [one for one in indices if one is not None]
    if len(single) == 1 and node.dtype(single[0]) == "bool" and not accumulate and _is_one(node, values):
        # A mask and one number: nothing is counted.
        lead = next(place for place, one in enumerate(indices) if one is not None)
        mask = single[0]
        behind = node.rank(input) - lead - node.rank(mask)
        mask = reshaped(node, mask, [*sizes_of(node, mask), *[1] * behind])
        return relay.where(mask, reshaped(node, given, []), input)
    axes, places, place = index_places(node, input, indices)
    if not axes:
        return add_or_replace(node, input, given, accumulate)
    rank = node.rank(input)
    rest = [axis for axis in range(rank) if axis not in axes]
    if len(axes) == 1 and axes[0] and node.rank(places[0]) == 1:
        shown = sizes_of(node, input)
        shown[axes[0]] = size_of(node, places[0], 0)
        mode = "add" if accumulate else "update"
        return _along(node, input, axes[0], places[0], broadcast_to(node, given, shown), mode)
    order = axes + rest
    plain = order == list(range(rank))
    data = input if plain else relay.transpose(input, order)
    depth = max(node.rank(one) for one in places)
    shape = _common(node, places)
    vectors = relay.stack([broadcast_to(node, one, shape) for one in places], 0)
    others = [size_of(node, input, axis) for axis in rest]
    # Values are in the shape of the result of reading at the same places.
    shown = [*others[:place], *shape, *others[place:]]
    wide = broadcast_to(node, given, shown)
    if place:
        wide = relay.transpose(
            wide, [*range(place, place + depth), *range(place), *range(place + depth, len(shown))]
        )
    made = relay.scatter_nd(data, vectors, wide, "add" if accumulate else "update")
    if plain:
        return made
    return relay.transpose(made, [order.index(axis) for axis in range(rank)])


def add_or_replace(node: TorchNode, data: Expr, values: Expr, accumulate: bool) -> Expr:
    """Values in place of all elements, or added to them."""
    return relay.add(data, values) if accumulate else broadcast_to(node, values, sizes_of(node, data))


def _is_one(node: TorchNode, values: Expr) -> bool:
    return all(size == 1 for size in node.shape(values))


def _common(node: TorchNode, tensors: list[Expr]) -> list[Size]:
    """The shape of tensors that are broadcast."""
    rank = max(node.rank(one) for one in tensors)
    found: list[Size] = [1] * rank
    for one in tensors:
        lead = rank - node.rank(one)
        for axis, size in enumerate(sizes_of(node, one)):
            have = found[lead + axis]
            if isinstance(have, int) and have == 1:
                found[lead + axis] = size
    return found


@converter("aten::put")
def put(node: TorchNode, input: Expr, index: Expr, source: Expr, accumulate: bool = False) -> Expr:
    """Elements of the flattened tensor replaced, or added to."""
    flat = reshaped(node, input, [-1])
    places = from_front(node, reshaped(node, index, [-1]), multiplied(sizes_of(node, input)))
    values = reshaped(node, node.cast(source, node.dtype(input)), [-1])
    build = relay.scatter_add if accumulate else relay.scatter
    return reshaped(node, build(flat, places, values, 0), sizes_of(node, input))


def _along(node: TorchNode, input: Expr, dim: int, index: Expr, source: Expr, mode: str) -> Expr:
    """Slices along an axis written at indices, or combined with what is there."""
    if not node.rank(input):
        data = relay.reshape(input, (1,))
        made = _along(node, data, 0, reshaped(node, index, [1]), reshaped(node, source, [1]), mode)
        return relay.reshape(made, ())
    axis, rank = node.axis_of(dim, node.rank(input)), node.rank(input)
    places = index if node.rank(index) else relay.reshape(index, (1,))
    values = node.cast(source, node.dtype(input))
    if axis and mode in ("update", "add") and node.dtype(input) != "bool":
        # One index for each element of the source: the tensor itself, which may be a large cache, stays as it is.
        line = relay.reshape(relay.cast(places, "int64"), [-1 if one == axis else 1 for one in range(rank)])
        build = relay.scatter if mode == "update" else relay.scatter_add
        return build(input, broadcast_to(node, line, sizes_of(node, source)), values, axis)
    vectors = relay.expand_dims(relay.cast(places, "int64"), 0)
    if not axis:
        return relay.scatter_nd(input, vectors, values, mode)
    order = [axis, *(one for one in range(rank) if one != axis)]
    back = [order.index(one) for one in range(rank)]
    made = relay.scatter_nd(relay.transpose(input, order), vectors, relay.transpose(values, order), mode)
    return relay.transpose(made, back)


@converter("aten::index_add")
def index_add(node: TorchNode, input: Expr, dim: int, index: Expr, source: Expr, alpha: Any = 1) -> Expr:
    """Slices along an axis added to."""
    given = source
    if alpha != 1:
        given = relay.multiply(source, node.cast(alpha, node.dtype(source)))
    return _along(node, input, dim, index, given, "add")


@converter("aten::index_copy")
def index_copy(node: TorchNode, input: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    """Slices along an axis replaced."""
    if node.rank(source) == 0 and node.rank(input) == 1:
        source = relay.reshape(source, (1,))
    return _along(node, input, dim, index, source, "update")


@converter("aten::index_fill")
def index_fill(node: TorchNode, input: Expr, dim: int, index: Expr, value: Operand) -> Expr:
    """Slices along an axis filled with a number."""
    axis = node.axis_of(dim, node.rank(input))
    sizes = sizes_of(node, input) or [1]
    places = index if node.rank(index) else relay.reshape(index, (1,))
    sizes[axis] = size_of(node, places, 0)
    number = broadcast_to(node, node.cast(value, node.dtype(input)), sizes)
    return _along(node, input, dim, places, number, "update")


@converter("aten::index_reduce")
def index_reduce(
    node: TorchNode, input: Expr, dim: int, index: Expr, source: Expr, reduce: str, include_self: bool = True
) -> Expr:
    """Slices along an axis combined with others."""
    axis, rank = node.axis_of(dim, node.rank(input)), node.rank(input)
    line = relay.reshape(index, [-1 if one == axis else 1 for one in range(max(rank, 1))])
    sizes = sizes_of(node, source)
    places = broadcast_to(node, line, sizes) if rank else reshaped(node, index, [])
    return scatter_reduce(node, input, dim, places, source, reduce, include_self)


@converter("aten::masked_scatter")
def masked_scatter(node: TorchNode, input: Expr, mask: Expr, source: Expr) -> Expr:
    """The elements of a source, in order, at the places where a mask holds."""
    sizes = common_sizes(node, sizes_of(node, input), sizes_of(node, mask))
    wide = broadcast_to(node, mask, sizes)
    flat = reshaped(node, wide, [-1])
    order = relay.subtract(relay.cumsum(relay.cast(flat, "int64"), 0), const(1, "int64"))
    chosen = relay.take(reshaped(node, source, [-1]), relay.maximum(order, const(0, "int64")), axis=0)
    shown = reshaped(node, node.cast(chosen, node.dtype(input)), sizes)
    return relay.where(wide, shown, broadcast_to(node, input, sizes))


# Parts


@converter("aten::select_scatter")
def select_scatter(node: TorchNode, input: Expr, src: Expr, dim: int, index: Any) -> Expr:
    """One place of an axis replaced."""
    axis, rank = node.axis_of(dim, node.rank(input)), node.rank(input)
    size = as_scalar(size_of(node, input, axis))
    place = as_scalar(index)
    place = relay.where(relay.less(place, const(0, "int64")), relay.add(place, size), place)
    values = relay.expand_dims(node.cast(src, node.dtype(input)), axis)
    if not isinstance(index, int):
        return _along(node, input, axis, relay.reshape(place, (1,)), values, "update")
    line = relay.reshape(
        positions(node, size_of(node, input, axis)), [-1 if one == axis else 1 for one in range(rank)]
    )
    here = relay.equal(line, place)
    return relay.where(here, values, input)


@converter("aten::slice_scatter")
def slice_scatter(
    node: TorchNode, input: Expr, src: Expr, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Expr:
    """Part of an axis replaced."""
    axis = node.axis_of(dim, node.rank(input))
    whole = node.shape(input)[axis]
    values = node.cast(src, node.dtype(input))
    values = _in_shape_of_part(node, values, input, axis)
    known = (
        whole is not None
        and (start is None or isinstance(start, int))
        and (end is None or isinstance(end, int))
    )
    if known:
        assert whole is not None
        first, last, by = slice(start, min(end, whole) if end is not None else None, step).indices(whole)
        if by == 1:
            last = max(first, last)
            pieces = [part(node, input, axis, 0, first)] if first else []
            pieces += [values] if last > first else []
            pieces += [part(node, input, axis, last, LAST)] if last < whole else []
            return pieces[0] if len(pieces) == 1 else relay.concatenate(pieces, axis)
        places: Expr = const(np.arange(first, last, by).astype("int64"))
    else:
        size = as_scalar(size_of(node, input, axis))
        first_of = _bounded(node, 0 if start is None else start, size)
        last_of = _bounded(node, LAST if end is None else end, size)
        count = node.shape(values)[axis]
        if count is None:
            places = relay.arange(first_of, last_of, const(step, "int64"), "int64")
        else:
            places = relay.add(first_of, const(np.arange(0, count * step, step), "int64"))
    return _along(node, input, axis, places, values, "update")


def _in_shape_of_part(node: TorchNode, values: Expr, data: Expr, axis: int) -> Expr:
    """Values that are broadcast to the axes that the part has in full."""
    wanted = sizes_of(node, data)
    have = sizes_of(node, values)
    lead = len(wanted) - len(have)
    full = [1] * lead + list(have)
    sizes = [full[place] if place == axis else wanted[place] for place in range(len(wanted))]
    return broadcast_to(node, values, sizes)


def _bounded(node: TorchNode, place: Any, size: Expr) -> Expr:
    """A bound of a slice, counted from the front and within the axis."""
    given = as_scalar(place)
    given = relay.where(relay.less(given, const(0, "int64")), relay.add(given, size), given)
    return relay.maximum(relay.minimum(given, size), const(0, "int64"))


@converter("aten::diagonal_scatter")
def diagonal_scatter(
    node: TorchNode, input: Expr, src: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Expr:
    """A diagonal of matrices replaced."""
    rank = node.rank(input)
    one, two = node.axis_of(dim1, rank), node.axis_of(dim2, rank)
    order = [axis for axis in range(rank) if axis not in (one, two)] + [one, two]
    back = [order.index(axis) for axis in range(rank)]
    data = relay.transpose(input, order)
    made = relay.matrix_set_diag(data, node.cast(src, node.dtype(input)), int(offset))
    return relay.transpose(made, back)


@converter("aten::fill_diagonal")
def fill_diagonal(node: TorchNode, input: Expr, fill_value: Any, wrap: bool = False) -> Expr:
    """One number on the diagonal."""
    rank = node.rank(input)
    if wrap or rank != 2:
        raise node.fail("only the diagonal of one matrix, not wrapped around, can be filled")
    rows = relay.expand_dims(positions(node, size_of(node, input, 0)), 1)
    here = relay.equal(rows, positions(node, size_of(node, input, 1)))
    return relay.where(here, node.cast(fill_value, node.dtype(input)), input)
