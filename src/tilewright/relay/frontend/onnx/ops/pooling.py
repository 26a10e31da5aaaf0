"""Pooling over windows, global pooling, and unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import check_constants
from tilewright.relay.frontend.onnx.ops.windows import (
    LAYOUTS,
    Window,
    attribute_list,
    operators,
    spatial_rank,
    window_of,
)
from tilewright.relay.frontend.onnx.registry import converter

_MAX = operators("max_pool")
_AVERAGE = operators("avg_pool")
_MOST_TAPS = 4096


def _window(node: Node, data: Expr, fill: float = 0.0) -> tuple[Expr, Window]:
    rank = spatial_rank(node, data)
    kernel = tuple(int(item) for item in node.attr("kernel_shape"))
    if len(kernel) != rank:
        raise node.fail(f"kernel_shape has {len(kernel)} values for {rank} axes")
    return window_of(node, data, kernel, fill)


def _reached(node: Node, data: Expr, window: Window) -> tuple[tuple[int, ...], bool]:
    """How far the last windows reach beyond the padding, and whether relay has to find that out when it runs."""
    nothing = (0,) * window.rank
    if not node.attr("ceil_mode", 0):
        return nothing, False
    sizes = node.shape(data)[2:]
    known = tuple(size for size in sizes if size is not None)
    if len(known) < len(sizes):
        if any(
            after + stride > reach
            for after, stride, reach in zip(window.after, window.strides, window.reach, strict=True)
        ):
            # A last window may begin in the padding, and is then left out: relay would keep it.
            node.static_shape(data)
        return nothing, True
    ends = [
        (count - 1) * stride + reach
        for count, stride, reach in zip(window.counts(known, True), window.strides, window.reach, strict=True)
    ]
    return tuple(
        max(end - size - before - after, 0)
        for end, size, before, after in zip(ends, known, window.before, window.after, strict=True)
    ), False


def _arguments(window: Window, more: Sequence[int], ceil_mode: bool) -> dict[str, Any]:
    return {
        "pool_size": window.kernel,
        "strides": window.strides,
        "dilation": window.dilations,
        "padding": (
            *window.before,
            *(after + extra for after, extra in zip(window.after, more, strict=True)),
        ),
        "layout": LAYOUTS[window.rank],
        "ceil_mode": ceil_mode,
    }


def _padded(node: Node, data: Expr, window: Window) -> tuple[Expr, Window]:
    """Data that hold the zeros of the padding, and the window that slides over them."""
    nothing = (0,) * window.rank
    if window.padding == (*nothing, *nothing):
        return data, window
    widths = ((0, 0), (0, 0), *zip(window.before, window.after, strict=True))
    made = relay.nn.pad(data, widths, const(0, node.dtype(data)))
    return made, Window(window.kernel, window.strides, window.dilations, nothing, nothing)


@converter("AveragePool")
def average_pool(node: Node, data: Expr) -> Expr:
    """The average of each window; what is beyond the padding never counts."""
    padded, window = _window(node, data)
    include = bool(node.attr("count_include_pad", 0))
    made = _average(node, padded, window, include)
    if padded is data or include:
        return made
    # The program pads: the share of each window that is data is an average itself.
    inside, _ = _window(node, relay.ones_like(data))
    return made / _average(node, inside, window, include)


def _average(node: Node, data: Expr, window: Window, include: bool) -> Expr:
    more, at_run_time = _reached(node, data, window)
    if include and any(more):
        data, window = _padded(node, data, window)
        include = False
    made: Expr = _AVERAGE[window.rank](
        data, **_arguments(window, more, at_run_time), count_include_pad=include
    )
    return made


@converter("LpPool", since=2)
def lp_pool(node: Node, data: Expr) -> Expr:
    """The p-norm of each window."""
    power = float(node.attr("p", 2))
    data, window = _window(node, data)
    more, at_run_time = _reached(node, data, window)
    data, window = _padded(node, data, window)
    # What the windows reach beyond the data is zero, and is averaged over like the rest: only the sum matters.
    made = _AVERAGE[window.rank](
        _power(node, relay.abs(data), power),
        **_arguments(window, more, at_run_time),
        count_include_pad=True,
    )
    return _power(node, made * node.constant(float(prod(window.kernel)), data), 1 / power)


def _power(node: Node, data: Expr, power: float) -> Expr:
    if power == 1:
        return data
    if power == 2:
        return data * data
    return relay.sqrt(data) if power == 0.5 else relay.power(data, node.constant(power, data))


def _least(dtype: str) -> float:
    """The least value of an element type."""
    return float(np.finfo(dtype).min if dtype.startswith("float") else np.iinfo(dtype).min)


@converter("MaxPool")
def max_pool(node: Node, data: Expr) -> Sequence[Expr]:
    """The largest element of each window and, where it is requested, where that was."""
    data, window = _window(node, data, _least(node.dtype(data)))
    more, at_run_time = _reached(node, data, window)
    made: Expr = _MAX[window.rank](data, **_arguments(window, more, at_run_time))
    return [made, _places(node, data, window, more)] if node.wants(1) else [made]


def _places(node: Node, data: Expr, window: Window, more: Sequence[int]) -> Expr:
    """The place of the largest element of each window, counted over the whole tensor."""
    shape = node.static_shape(data)
    sizes = shape[2:]
    widths = (
        (0, 0),
        (0, 0),
        *((b, a + m) for b, a, m in zip(window.before, window.after, more, strict=True)),
    )
    padded = relay.nn.pad(data, widths, const(_least(node.dtype(data)), node.dtype(data)))
    counts = [
        (size + sum(width) - reach) // stride + 1
        for size, width, reach, stride in zip(sizes, widths[2:], window.reach, window.strides, strict=True)
    ]
    check_constants(node, shape[0], shape[1], *counts)
    if prod(window.kernel) > _MOST_TAPS:
        raise node.fail(f"windows of {prod(window.kernel)} elements have no indices: up to {_MOST_TAPS} have")
    axes = list(range(2, 2 + window.rank))
    # How far apart neighbours along each axis lie: row by row, or column by column.
    steps = [prod(sizes[axis + 1 :]) for axis in range(window.rank)]
    if node.attr("storage_order", 0):
        steps = [prod(sizes[:axis]) for axis in range(window.rank)]
    views, offsets = [], []
    for tap in np.ndindex(*window.kernel):
        begin = [at * step for at, step in zip(tap, window.dilations, strict=True)]
        end = [
            first + (count - 1) * stride + 1
            for first, count, stride in zip(begin, counts, window.strides, strict=True)
        ]
        views.append(relay.strided_slice(padded, begin, end, list(window.strides), axes=axes))
        offsets.append(sum(first * step for first, step in zip(begin, steps, strict=True)))
    chosen = relay.argmax(relay.stack(views, axis=0), axis=0)
    base = np.zeros((1, 1, *counts), "int64")
    for axis, (count, stride, before, step) in enumerate(
        zip(counts, window.strides, window.before, steps, strict=True)
    ):
        along = (np.arange(count) * stride - before) * step
        base = base + along.reshape([-1 if axis + 2 == place else 1 for place in range(len(shape))])
    images = np.arange(shape[0] * shape[1], dtype="int64") * prod(sizes)
    base = base + images.reshape(shape[0], shape[1], *[1] * window.rank)
    return relay.take(const(np.asarray(offsets, "int64")), chosen, axis=0) + const(base)


@converter("MaxUnpool", since=9)
def max_unpool(node: Node, data: Expr, places: Expr, output_shape: Expr | None = None) -> Expr:
    """Elements put where a pooling found them, zeros elsewhere."""
    shape = node.static_shape(data)
    rank = len(shape) - 2
    kernel = tuple(int(item) for item in node.attr("kernel_shape"))
    strides = attribute_list(node, "strides", rank, 1)
    pads = [int(item) for item in node.attr("pads", None) or [0] * (2 * rank)]
    sizes = [
        (size - 1) * stride + taps - pads[axis] - pads[axis + rank]
        for axis, (size, stride, taps) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    ]
    whole = [*shape[:2], *sizes]
    if any(size < 1 for size in sizes):
        raise node.fail(f"the result would have the shape {whole}")
    nothing = relay.zeros((prod(whole),), node.dtype(data))
    flat = relay.scatter(nothing, relay.reshape(places, (-1,)), relay.reshape(data, (-1,)), 0)
    made = relay.reshape(flat, whole)
    if output_shape is None:
        return made
    known = node.value(output_shape)
    if known is None:
        more = relay.cast(output_shape, "int64") - node.constants(whole)
        widths: Any = relay.stack([relay.zeros_like(more), more], axis=1)
    else:
        widths = [(0, int(want) - have) for want, have in zip(known.reshape(-1), whole, strict=True)]
        if any(after < 0 for _, after in widths):
            raise node.fail(f"the output shape {known.tolist()} is smaller than {whole}")
    return relay.nn.pad(made, widths, const(0, node.dtype(data)))


# Over everything


def _space(node: Node, data: Expr) -> list[int]:
    return list(range(2, node.rank(data)))


@converter("GlobalAveragePool")
def global_average_pool(node: Node, data: Expr) -> Expr:
    """The average of each channel."""
    if node.rank(data) == 4:
        return relay.nn.global_avg_pool2d(data)
    return relay.mean(data, axis=_space(node, data), keepdims=True)


@converter("GlobalMaxPool")
def global_max_pool(node: Node, data: Expr) -> Expr:
    """The largest element of each channel."""
    if node.rank(data) == 4:
        return relay.nn.global_max_pool2d(data)
    return relay.max(data, axis=_space(node, data), keepdims=True)


@converter("GlobalLpPool", since=2)
def global_lp_pool(node: Node, data: Expr) -> Expr:
    """The p-norm of each channel."""
    power = float(node.attr("p", 2))
    total = relay.sum(_power(node, relay.abs(data), power), axis=_space(node, data), keepdims=True)
    return _power(node, total, 1 / power)
