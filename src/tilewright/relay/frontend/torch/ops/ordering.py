"""Sorting, searching, and scans along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import as_scalar, reshaped, sizes_of
from tilewright.relay.frontend.torch.node import Operand, TorchNode
from tilewright.relay.frontend.torch.ops.views import part, select
from tilewright.relay.frontend.torch.registry import converter


def _sortable(node: TorchNode, data: Expr) -> Expr:
    return node.cast(data, "uint8") if node.dtype(data) == "bool" else data


@converter("aten::sort")
def sort(
    node: TorchNode, input: Expr, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> list[Expr]:
    """Elements in order along an axis, and where they were."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    axis = node.axis_of(dim, node.rank(input))
    places = relay.argsort(_sortable(node, input), axis, not descending, "int64")
    return [relay.gather(input, axis, places), places]


@converter("aten::msort")
def msort(node: TorchNode, input: Expr) -> Expr:
    """Elements in order along the first axis."""
    return sort(node, input, 0)[0]


@converter("aten::argsort")
def argsort(
    node: TorchNode, input: Expr, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> Expr:
    """Where elements in order are."""
    return sort(node, input, dim, descending)[1]


@converter("aten::topk")
def topk(
    node: TorchNode, input: Expr, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Expr]:
    """The greatest elements along an axis, or the smallest, and where they are."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    axis = node.axis_of(dim, node.rank(input))
    if isinstance(k, int) and k == 0:
        empty = part(node, input, axis, 0, 0)
        return [empty, relay.cast(relay.zeros_like(empty), "int64")]
    found: Any = relay.topk(input, k, axis, "both", not largest, "int64")
    return [found[0], found[1]]


@converter("aten::kthvalue")
def kthvalue(node: TorchNode, input: Expr, k: int, dim: int = -1, keepdim: bool = False) -> list[Expr]:
    """The k-th smallest element along an axis, and where it is."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    axis = node.axis_of(dim, node.rank(input))
    return [_at(node, one, axis, k - 1, keepdim) for one in sort(node, input, axis)]


def _at(node: TorchNode, data: Expr, axis: int, place: int, keepdim: bool) -> Expr:
    found = select(node, data, axis, place)
    return relay.expand_dims(found, axis) if keepdim else found


@converter("aten::median.dim")
def median_dim(node: TorchNode, input: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    """The lower of the middle elements along an axis, and where it is."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    size = node.known_size(input, node.axis_of(dim, node.rank(input)))
    return kthvalue(node, input, (size + 1) // 2, dim, keepdim)


@converter("aten::median")
def median(node: TorchNode, input: Expr) -> Expr:
    """The lower of the middle elements."""
    return median_dim(node, reshaped(node, input, [-1]), 0)[0]


@converter("aten::mode")
def mode(node: TorchNode, input: Expr, dim: int = -1, keepdim: bool = False) -> list[Expr]:
    """The most frequent element along an axis, of several the smallest, and where it is last."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    axis = node.axis_of(dim, node.rank(input))
    values, places = sort(node, input, axis)
    same = relay.equal(relay.expand_dims(values, axis + 1), relay.expand_dims(values, axis))
    counts = relay.sum(relay.cast(same, "int64"), [axis + 1])
    first = relay.cast(relay.argmax(counts, [axis], keepdims=True), "int64")
    last = first + relay.max(counts, [axis], keepdims=True) - const(1, "int64")
    found: list[Expr] = [relay.gather(values, axis, first), relay.gather(places, axis, last)]
    return found if keepdim else [relay.squeeze(each, [axis]) for each in found]


@converter("aten::nanmedian.dim")
def nanmedian_dim(node: TorchNode, input: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    """The lower of the middle elements that are numbers, and where it is; NaNs are last in order."""
    if not node.rank(input):
        return [input, relay.zeros((), "int64")]
    axis = node.axis_of(dim, node.rank(input))
    values, places = sort(node, input, axis)
    count = relay.sum(relay.cast(relay.logical_not(relay.isnan(input)), "int64"), [axis], keepdims=True)
    middle = relay.floor_divide(relay.subtract(count, const(1, "int64")), const(2, "int64"))
    middle = relay.maximum(middle, const(0, "int64"))
    found = [relay.gather(one, axis, middle) for one in (values, places)]
    return [one if keepdim else relay.squeeze(one, axis=[axis]) for one in found]


@converter("aten::nanmedian")
def nanmedian(node: TorchNode, input: Expr) -> Expr:
    """The lower of the middle elements that are numbers."""
    return nanmedian_dim(node, reshaped(node, input, [-1]), 0)[0]


@converter("aten::searchsorted")
def searchsorted(
    node: TorchNode,
    sorted_sequence: Expr,
    input: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Expr | None = None,
) -> Expr:
    """Where values belong in sorted sequences."""
    sequence = sorted_sequence
    if sorter is not None:
        sequence = relay.gather(sequence, node.rank(sequence) - 1, sorter)
    values = node.tensor(input)
    dtype = node.result_dtype(sequence, values)
    behind = right or side == "right"
    kind = "int32" if out_int32 else "int64"
    flat = relay.reshape(values, (1,)) if not node.rank(values) else values
    found = relay.searchsorted(node.cast(sequence, dtype), node.cast(flat, dtype), behind, kind)
    return relay.reshape(found, ()) if not node.rank(values) else found


@converter("aten::bucketize")
def bucketize(
    node: TorchNode, input: Operand, boundaries: Expr, out_int32: bool = False, right: bool = False
) -> Expr:
    """In which bucket between boundaries each value is."""
    return searchsorted(node, boundaries, input, out_int32, right)


# Scans


@converter("aten::cumsum")
def cumsum(node: TorchNode, input: Expr, dim: int, dtype: str | None = None) -> Expr:
    """Sums of all elements up to each."""
    return _scan(node, relay.cumsum, input, dim, dtype)


@converter("aten::cumprod")
def cumprod(node: TorchNode, input: Expr, dim: int, dtype: str | None = None) -> Expr:
    """Products of all elements up to each."""
    return _scan(node, relay.cumprod, input, dim, dtype)


def _scan(node: TorchNode, build: Any, input: Expr, dim: int, dtype: str | None) -> Expr:
    kind = dtype or ("int64" if node.is_integral(input) else node.dtype(input))
    data = node.cast(input, kind)
    if not node.rank(data):
        return data
    made: Expr = build(data, node.axis_of(dim, node.rank(data)), kind)
    return made


@converter("aten::logcumsumexp", "aten::_logcumsumexp")
def logcumsumexp(node: TorchNode, input: Expr, dim: int) -> Expr:
    """Logarithms of sums of exponentials up to each element: against the greatest so far nothing overflows."""
    if not node.rank(input):
        return input
    axis, rank = node.axis_of(dim, node.rank(input)), node.rank(input)
    size = node.known_size(input, axis)
    if size == 0:
        return input
    order = [*(one for one in range(rank) if one != axis), axis]
    back = [order.index(one) for one in range(rank)]
    data = relay.transpose(input, order)
    seen = const(np.tril(np.ones((size, size), bool)))
    pairs = relay.where(seen, relay.expand_dims(data, rank - 1), node.constant(-np.inf, data))
    high = relay.max(pairs, [rank], keepdims=True)
    safe = relay.where(relay.isinf(high), node.constant(0.0, data), high)
    total = relay.log(relay.sum(relay.exp(relay.subtract(pairs, safe)), [rank]))
    return relay.transpose(relay.add(total, relay.squeeze(safe, axis=[rank])), back)


def _running(node: TorchNode, data: Expr, dim: int, greatest: bool) -> list[Expr]:
    """The extreme up to each element, and where its last occurrence is."""
    if not node.rank(data):
        return [data, relay.zeros((), "int64")]
    axis, rank = node.axis_of(dim, node.rank(data)), node.rank(data)
    size = node.known_size(data, axis)
    order = [*(one for one in range(rank) if one != axis), axis]
    back = [order.index(one) for one in range(rank)]
    moved = relay.transpose(_sortable(node, data), order)
    build = relay.argmax if greatest else relay.argmin
    seen = const(np.tril(np.ones((size, size), bool)))
    lowest: Any = -np.inf if greatest else np.inf
    kind = node.dtype(moved)
    if node.is_integral(moved):
        limits = np.iinfo(kind)
        lowest = limits.min if greatest else limits.max
    pairs = relay.where(seen, relay.expand_dims(moved, rank - 1), node.constant(lowest, kind))
    # Among equals the last is meant, and of those not seen yet none: they are masked with the neutral element.
    last = relay.cast(build(pairs, [rank], select_last_index=True), "int64")
    last = relay.minimum(last, const(np.arange(size), "int64"))
    places = relay.transpose(last, back)
    return [relay.gather(data, axis, places), places]


@converter("aten::cummax")
def cummax(node: TorchNode, input: Expr, dim: int) -> list[Expr]:
    """The greatest element up to each, and where it is."""
    return _running(node, input, dim, True)


@converter("aten::cummin")
def cummin(node: TorchNode, input: Expr, dim: int) -> list[Expr]:
    """The smallest element up to each, and where it is."""
    return _running(node, input, dim, False)


@converter("aten::diff")
def diff(
    node: TorchNode,
    input: Expr,
    n: int = 1,
    dim: int = -1,
    prepend: Expr | None = None,
    append: Expr | None = None,
) -> Expr:
    """Differences of neighbours along an axis."""
    if n == 0:
        return input
    axis = node.axis_of(dim, node.rank(input))
    parts = [one for one in (prepend, input, append) if one is not None]
    data = relay.concatenate(parts, axis) if len(parts) > 1 else input
    for _ in range(n):
        size = node.known_size(data, axis)
        after, before = (
            part(node, data, axis, min(1, size), size),
            part(node, data, axis, 0, max(size - 1, 0)),
        )
        is_truth = node.dtype(data) == "bool"
        data = relay.logical_xor(after, before) if is_truth else relay.subtract(after, before)
    return data


# Counting


@converter("aten::_unique2", "aten::_unique", "aten::unique_dim")
def unique(
    node: TorchNode,
    input: Expr,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> list[Expr]:
    """The different elements, in order, where each element is among them, and how often."""
    if dim is not None and node.rank(input) != 1:
        raise node.fail("different slices of a tensor are not supported, only different elements")
    flat = reshaped(node, input, [-1])
    found = relay.unique(flat, is_sorted=True, return_counts=return_counts)
    inverse = reshaped(node, relay.cast(found[2], "int64"), sizes_of(node, input))
    counts = relay.cast(found[4], "int64") if return_counts else relay.zeros((0,), "int64")
    return [found[0], inverse, counts]


@converter("aten::bincount")
def bincount(node: TorchNode, input: Expr, weights: Expr | None = None, minlength: Any = 0) -> Expr:
    """How often each number occurs, or the sum of its weights."""
    places = relay.cast(input, "int64")
    most = relay.add(relay.max(places, [0]), const(1, "int64"))
    count = relay.maximum(most, as_scalar(minlength))
    kind = "int64" if weights is None else "float32" if node.dtype(weights) == "float32" else "float64"
    empty = relay.full(node.constant(0, kind), relay.reshape(count, (1,)), kind)
    values = relay.ones_like(places) if weights is None else node.cast(weights, kind)
    return relay.scatter_add(empty, places, values, 0)


@converter("aten::histc")
def histc(node: TorchNode, input: Expr, bins: int = 100, min: Any = 0, max: Any = 0) -> Expr:
    """How many elements are in each of equal intervals."""
    dtype = node.dtype(input)
    flat = reshaped(node, input, [-1])
    low: Expr = node.constant(float(min), dtype)
    high: Expr = node.constant(float(max), dtype)
    if float(min) == float(max) == 0:
        low, high = relay.min(flat), relay.max(flat)
        same = relay.equal(low, high)
        one = node.constant(1.0, dtype)
        low, high = relay.where(same, low - one, low), relay.where(same, high + one, high)
    width = relay.subtract(high, low)
    place = relay.divide(relay.multiply(relay.subtract(flat, low), node.constant(float(bins), dtype)), width)
    inside = relay.logical_and(relay.greater_equal(flat, low), relay.less_equal(flat, high))
    numbers = relay.minimum(relay.cast(relay.floor(place), "int64"), const(bins - 1, "int64"))
    numbers = relay.where(inside, numbers, const(bins, "int64"))
    empty = relay.zeros((bins + 1,), dtype)
    counted = relay.scatter_add(empty, numbers, relay.ones_like(flat), 0)
    return relay.strided_slice(counted, [0], [bins])
