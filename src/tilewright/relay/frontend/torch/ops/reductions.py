"""Reductions: sums, means, extremes, norms and truth values over axes."""

from __future__ import annotations

import math
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import Size, as_scalar, multiplied, size_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.elementwise import add
from tilewright.relay.frontend.torch.registry import converter


def _summand(node: TorchNode, data: Expr, dtype: str | None) -> Expr:
    """What is summed: integers and truth values as int64."""
    if dtype is None and node.is_integral(data):
        dtype = "int64"
    return node.cast(data, dtype) if dtype else data


@converter("aten::sum")
def sum_(
    node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Expr:
    """Sums."""
    data = _summand(node, input, dtype)
    rank = node.rank(data)
    return relay.sum(data, node.axes_of(dim, rank), keepdim) if rank else data


@converter("aten::nansum")
def nansum(
    node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Expr:
    """Sums of what are numbers."""
    if not node.is_integral(input):
        input = relay.where(relay.isnan(input), node.constant(0.0, input), input)
    return sum_(node, input, dim, keepdim, dtype)


@converter("aten::mean")
def mean(
    node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Expr:
    """Means."""
    data = node.cast(input, dtype) if dtype else input
    rank = node.rank(data)
    return relay.mean(data, node.axes_of(dim, rank), keepdim) if rank else data


@converter("aten::nanmean")
def nanmean(
    node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Expr:
    """Means of what are numbers."""
    data = node.cast(input, dtype) if dtype else input
    count = sum_(node, node.cast(relay.logical_not(relay.isnan(data)), node.dtype(data)), dim, keepdim)
    return relay.divide(nansum(node, data, dim, keepdim), count)


@converter("aten::prod")
def prod(
    node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Expr:
    """Products."""
    data = _summand(node, input, dtype)
    rank = node.rank(data)
    return relay.prod(data, node.axes_of(dim, rank), keepdim) if rank else data


# Extremes


def _of_truth(node: TorchNode, data: Expr) -> Expr:
    return node.cast(data, "uint8") if node.dtype(data) == "bool" else data


@converter("aten::amax", "aten::max", "aten::max.unary_out")
def amax(node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    """The greatest elements."""
    rank = node.rank(input)
    if not rank:
        return input
    return node.cast(relay.max(_of_truth(node, input), node.axes_of(dim, rank), keepdim), node.dtype(input))


@converter("aten::amin", "aten::min", "aten::min.unary_out")
def amin(node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    """The smallest elements."""
    rank = node.rank(input)
    if not rank:
        return input
    return node.cast(relay.min(_of_truth(node, input), node.axes_of(dim, rank), keepdim), node.dtype(input))


@converter("aten::aminmax")
def aminmax(node: TorchNode, input: Expr, dim: int | None = None, keepdim: bool = False) -> list[Expr]:
    """The smallest and the greatest."""
    return [amin(node, input, dim, keepdim), amax(node, input, dim, keepdim)]


def _place(node: TorchNode, build: Any, input: Expr, dim: int | None, keepdim: bool) -> Expr:
    """The first place of an extreme, counted along an axis or in the flat tensor."""
    data = _of_truth(node, input)
    rank = node.rank(data)
    if not rank:
        return relay.zeros((), "int64")
    if dim is None:
        flat = relay.reshape(data, (-1,))
        found = relay.cast(build(flat, [0]), "int64")
        return relay.reshape(found, [1] * rank) if keepdim else found
    return relay.cast(build(data, [node.axis_of(dim, rank)], keepdim), "int64")


@converter("aten::argmax")
def argmax(node: TorchNode, input: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    """Where the greatest element is."""
    return _place(node, relay.argmax, input, dim, keepdim)


@converter("aten::argmin")
def argmin(node: TorchNode, input: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    """Where the smallest element is."""
    return _place(node, relay.argmin, input, dim, keepdim)


@converter("aten::max.dim")
def max_dim(node: TorchNode, input: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    """The greatest elements along an axis, and where they are."""
    return [amax(node, input, dim, keepdim), argmax(node, input, dim, keepdim)]


@converter("aten::min.dim")
def min_dim(node: TorchNode, input: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    """The smallest elements along an axis, and where they are."""
    return [amin(node, input, dim, keepdim), argmin(node, input, dim, keepdim)]


# Truth values


@converter("aten::all")
def all_(node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    """True where no element is zero."""
    return _of_all(node, relay.all, input, dim, keepdim)


@converter("aten::any")
def any_(node: TorchNode, input: Expr, dim: Any = None, keepdim: bool = False) -> Expr:
    """True where some element is not zero."""
    return _of_all(node, relay.any, input, dim, keepdim)


def _of_all(node: TorchNode, build: Any, input: Expr, dim: Any, keepdim: bool) -> Expr:
    data = node.cast(input, "bool")
    rank = node.rank(data)
    found = build(data, node.axes_of(dim, rank), keepdim) if rank else data
    return relay.cast(found, "uint8") if node.dtype(input) == "uint8" else found


@converter("aten::count_nonzero")
def count_nonzero(node: TorchNode, input: Expr, dim: Any = None) -> Expr:
    """How many elements are not zero."""
    return sum_(node, node.cast(input, "bool"), dim)


@converter("aten::equal")
def equal(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """True if two tensors have the same shape and the same elements."""
    if node.shape(input) != node.shape(other):
        return node.constant(False, "bool")
    one, two = node.promoted(input, other)
    return all_(node, relay.equal(one, two))


# Spread


def _moments(
    node: TorchNode, data: Expr, axes: list[int], keepdim: bool, correction: Any
) -> tuple[Expr, Expr]:
    """Mean and variance; the sum of squares is divided by the count less a correction."""
    dtype = node.dtype(data)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    work = node.cast(data, wide)
    middle = relay.mean(work, axes, keepdims=True) if axes else work
    apart = relay.subtract(work, middle)
    squares = relay.multiply(apart, apart)
    total = relay.sum(squares, axes, keepdim) if axes else squares
    count: Size = multiplied([size_of(node, data, axis) for axis in axes])
    less = 1.0 if correction is None else float(correction)
    if isinstance(count, int):
        divisor: Expr = node.constant(max(count - less, 0.0), wide)
    else:
        divisor = relay.maximum(
            relay.subtract(as_scalar(count, wide), node.constant(less, wide)), node.constant(0.0, wide)
        )
    if not keepdim and axes:
        middle = relay.squeeze(middle, axis=axes)
    return node.cast(middle, dtype), node.cast(relay.divide(total, divisor), dtype)


def _correction(node: TorchNode, unbiased: bool | None, correction: Any) -> Any:
    return (1 if unbiased else 0) if unbiased is not None else correction


@converter("aten::var")
def var(
    node: TorchNode,
    input: Expr,
    dim: Any = None,
    unbiased: bool | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> Expr:
    """Variances."""
    axes = node.axes_of(dim, node.rank(input))
    return _moments(node, input, axes, keepdim, _correction(node, unbiased, correction))[1]


@converter("aten::std")
def std(
    node: TorchNode,
    input: Expr,
    dim: Any = None,
    unbiased: bool | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> Expr:
    """Standard deviations."""
    return relay.sqrt(var(node, input, dim, unbiased, correction, keepdim))


@converter("aten::var_mean")
def var_mean(
    node: TorchNode,
    input: Expr,
    dim: Any = None,
    unbiased: bool | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> list[Expr]:
    """Variances and means."""
    axes = node.axes_of(dim, node.rank(input))
    middle, spread = _moments(node, input, axes, keepdim, _correction(node, unbiased, correction))
    return [spread, middle]


@converter("aten::std_mean")
def std_mean(
    node: TorchNode,
    input: Expr,
    dim: Any = None,
    unbiased: bool | None = None,
    correction: Any = None,
    keepdim: bool = False,
) -> list[Expr]:
    """Standard deviations and means."""
    spread, middle = var_mean(node, input, dim, unbiased, correction, keepdim)
    return [relay.sqrt(spread), middle]


# Norms


@converter("aten::logsumexp", "aten::special_logsumexp")
def logsumexp(node: TorchNode, input: Expr, dim: Any, keepdim: bool = False) -> Expr:
    """The logarithm of the sum of exponentials, in which no exponential overflows."""
    data = node.floating(input)
    rank = node.rank(data)
    if not rank:
        return data
    axes = node.axes_of(dim, rank)
    high = relay.max(data, axes, keepdims=True)
    high = relay.where(relay.isinf(high), node.constant(0.0, data), high)
    total = relay.log(relay.sum(relay.exp(relay.subtract(data, high)), axes, keepdim))
    return relay.add(total, high if keepdim else relay.squeeze(high, axis=axes))


def norm_of(node: TorchNode, data: Expr, order: float, axes: list[int], keepdim: bool) -> Expr:
    """The norm of a vector along axes."""
    if not node.rank(data):
        return relay.abs(data) if order else node.cast(node.cast(data, "bool"), node.dtype(data))
    if order == 2:
        return relay.sqrt(relay.sum(relay.multiply(data, data), axes, keepdim))
    size = relay.abs(data)
    if order == math.inf:
        return relay.max(size, axes, keepdim)
    if order == -math.inf:
        return relay.min(size, axes, keepdim)
    if order == 0:
        return relay.sum(node.cast(node.cast(data, "bool"), node.dtype(data)), axes, keepdim)
    if order == 1:
        return relay.sum(size, axes, keepdim)
    powers = relay.power(size, node.constant(float(order), data))
    return relay.power(relay.sum(powers, axes, keepdim), node.constant(1.0 / float(order), data))


@converter("aten::norm", "aten::linalg_vector_norm", "aten::frobenius_norm")
def norm(
    node: TorchNode,
    input: Expr,
    p: Any = 2,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> Expr:
    """Norms of vectors along axes; that of Frobenius is the one of order 2."""
    data = node.floating(node.cast(input, dtype) if dtype else input)
    order = ord if ord is not None else 2 if p is None else p
    return norm_of(node, data, float(order), node.axes_of(dim, node.rank(data)), keepdim)


@converter("aten::linalg_norm")
def linalg_norm(
    node: TorchNode,
    input: Expr,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> Expr:
    """Norms of vectors, or of matrices where there are two axes and an order."""
    rank = node.rank(input)
    axes = node.axes_of(dim, rank)
    if ord is None or len(axes) == 1:
        return norm(node, input, ord=ord, dim=dim, keepdim=keepdim, dtype=dtype)
    return linalg_matrix_norm(node, input, ord, dim if dim is not None else (-2, -1), keepdim, dtype)


@converter("aten::linalg_matrix_norm")
def linalg_matrix_norm(
    node: TorchNode,
    input: Expr,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    dtype: str | None = None,
) -> Expr:
    """Norms of matrices that need no singular values."""
    data = node.floating(node.cast(input, dtype) if dtype else input)
    rank = node.rank(data)
    rows, columns = (node.axis_of(int(axis), rank) for axis in dim)
    if ord == "fro":
        return norm_of(node, data, 2, sorted((rows, columns)), keepdim)
    if ord == "nuc" or abs(float(ord)) == 2:
        raise node.fail(f"the norm {ord!r} of matrices needs singular values, which are not supported")
    summed, kept = (columns, rows) if abs(float(ord)) == math.inf else (rows, columns)
    totals = relay.sum(relay.abs(data), [summed], keepdims=True)
    found = (relay.max if float(ord) > 0 else relay.min)(totals, [kept], keepdims=True)
    return found if keepdim else relay.squeeze(found, axis=sorted((rows, columns)))


@converter("aten::dist")
def dist(node: TorchNode, input: Expr, other: Expr, p: Any = 2) -> Expr:
    """The norm of a difference."""
    apart = add(node, input, other, alpha=-1)
    return norm_of(node, apart, float(p), list(range(node.rank(apart))), False)
