"""Pooling over windows and to a given size."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import reshaped, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.convolution import DATA_LAYOUTS
from tilewright.relay.frontend.torch.ops.creation import filled
from tilewright.relay.frontend.torch.registry import converter

_MAXIMUM: Final = {1: relay.nn.max_pool1d, 2: relay.nn.max_pool2d, 3: relay.nn.max_pool3d}
_AVERAGE: Final = {1: relay.nn.avg_pool1d, 2: relay.nn.avg_pool2d, 3: relay.nn.avg_pool3d}
_ADAPTIVE_AVERAGE: Final = {
    1: relay.nn.adaptive_avg_pool1d,
    2: relay.nn.adaptive_avg_pool2d,
    3: relay.nn.adaptive_avg_pool3d,
}
_ADAPTIVE_MAXIMUM: Final = {
    1: relay.nn.adaptive_max_pool1d,
    2: relay.nn.adaptive_max_pool2d,
    3: relay.nn.adaptive_max_pool3d,
}


def _axes(node: TorchNode) -> int:
    """Over how many axes: the digit in the operator's name."""
    return int(node.op_type.partition("pool")[2][0])


def _batched(node: TorchNode, data: Expr, rank: int) -> tuple[Expr, bool]:
    """Data with a batch, and whether it was added."""
    single = node.rank(data) == rank + 1
    return (relay.expand_dims(data, 0) if single else data), single


def _unbatched(data: Expr, single: bool) -> Expr:
    return relay.squeeze(data, axis=[0]) if single else data


@converter("aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d")
def max_pool(
    node: TorchNode,
    input: Expr,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Expr:
    """The greatest element of each window."""
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    kernel = node.spread(kernel_size, rank, "kernel_size")
    made = _MAXIMUM[rank](
        data,
        pool_size=kernel,
        strides=node.spread(stride, rank, "stride") if stride else kernel,
        padding=node.spread(padding, rank, "padding"),
        dilation=node.spread(dilation, rank, "dilation"),
        layout=DATA_LAYOUTS[rank],
        ceil_mode=bool(ceil_mode),
    )
    return _unbatched(made, single)


@converter("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d")
def avg_pool(
    node: TorchNode,
    input: Expr,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:
    """The mean of each window, or its sum by a divisor."""
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    kernel = node.spread(kernel_size, rank, "kernel_size")
    steps = node.spread(stride, rank, "stride") if stride else kernel
    widths = node.spread(padding, rank, "padding")
    included = bool(count_include_pad) or divisor_override is not None
    made: Expr = _AVERAGE[rank](
        data,
        pool_size=kernel,
        strides=steps,
        padding=widths,
        layout=DATA_LAYOUTS[rank],
        ceil_mode=bool(ceil_mode),
        count_include_pad=included,
    )
    if divisor_override is not None:
        sums = _window_sizes(node, data, made, kernel, steps, widths) if ceil_mode else float(np.prod(kernel))
        made = relay.multiply(made, node.constant(sums / divisor_override, made))
    return _unbatched(made, single)


def _window_sizes(
    node: TorchNode, data: Expr, made: Expr, kernel: list[int], steps: list[int], widths: list[int]
) -> np.ndarray[Any, Any]:
    """How many elements each window has, padding among them; the last ones may end before they are full."""
    counts = np.ones(())
    for place, (size, step, before) in enumerate(zip(kernel, steps, widths, strict=True)):
        begins = np.arange(node.known_size(made, 2 + place)) * step - before
        ends = np.minimum(begins + size, node.known_size(data, 2 + place) + before)
        counts = counts[..., None] * (ends - begins)
    return counts


@converter(
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
)
def adaptive_avg_pool(node: TorchNode, input: Expr, output_size: Any) -> Expr:
    """Means of as many windows as the result has elements."""
    return _adapted(node, _ADAPTIVE_AVERAGE, input, output_size)


def _adapted(node: TorchNode, operators: Any, input: Expr, output_size: Any) -> Expr:
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    sizes = node.spread(output_size, rank, "output_size")
    return _unbatched(operators[rank](data, output_size=sizes, layout=DATA_LAYOUTS[rank]), single)


@converter("aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")
def adaptive_max_pool(node: TorchNode, input: Expr, output_size: Any) -> list[Expr]:
    """The greatest elements of as many windows as the result has elements, and where they are."""
    rank = _axes(node)
    made = _adapted(node, _ADAPTIVE_MAXIMUM, input, output_size)
    data, single = _batched(node, input, rank)
    sizes = node.shape(data)[2:]
    wanted = node.spread(output_size, rank, "output_size")
    if any(size is None for size in sizes):
        return [made, relay.cast(relay.zeros_like(made), "int64")]
    places = [_adaptive_places(int(size or 0), want) for size, want in zip(sizes, wanted, strict=True)]
    return [made, _unbatched(_places_of_maxima(node, data, places), single)]


def _adaptive_places(size: int, wanted: int) -> np.ndarray[Any, Any]:
    """The window of each element of the result: (wanted, longest), the last place repeated in shorter ones."""
    begins = [place * size // wanted for place in range(wanted)]
    ends = [-(-(place + 1) * size // wanted) for place in range(wanted)]
    longest = max(end - begin for begin, end in zip(begins, ends, strict=True))
    return np.asarray(
        [
            [min(begin + step, end - 1) for step in range(longest)]
            for begin, end in zip(begins, ends, strict=True)
        ]
    )


@converter("aten::max_pool1d_with_indices", "aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices")
def max_pool_with_indices(
    node: TorchNode,
    input: Expr,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> list[Expr]:
    """The greatest element of each window, and where it is among the elements of its channel."""
    made = max_pool(node, input, kernel_size, stride, padding, dilation, ceil_mode)
    rank = _axes(node)
    data, single = _batched(node, input, rank)
    sizes, counts = node.shape(data)[2:], node.shape(made)[-rank:]
    if None in sizes or None in counts:
        return [made, relay.cast(relay.zeros_like(made), "int64")]
    kernel = node.spread(kernel_size, rank, "kernel_size")
    settings = zip(
        kernel,
        node.spread(stride, rank, "stride") if stride else kernel,
        node.spread(padding, rank, "padding"),
        node.spread(dilation, rank, "dilation"),
        sizes,
        counts,
        strict=True,
    )
    places = []
    for size, step, before, apart, length, count in settings:
        assert length is not None and count is not None
        window = np.arange(count)[:, None] * step - before + np.arange(size)[None, :] * apart
        # Padding is read at the nearest element of the same window, so that it never wins by itself.
        inside = (window >= 0) & (window < length)
        first = np.where(inside, window, length).min(axis=1, keepdims=True)
        last = np.where(inside, window, -1).max(axis=1, keepdims=True)
        window = np.clip(window, first, last)
        places.append(window)
    return [made, _unbatched(_places_of_maxima(node, data, places), single)]


def _places_of_maxima(node: TorchNode, data: Expr, places: list[np.ndarray[Any, Any]]) -> Expr:
    """Where the greatest element of each window is; windows are places along each axis, (count, size)."""
    rank = len(places)
    sizes = [size for size in node.shape(data)[2:] if size is not None]
    counts = [len(place) for place in places]
    taps = [place.shape[1] for place in places]
    flat = np.zeros(counts + taps, np.int64)
    for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = place.shape
        flat = flat * size + place.reshape(shape)
    flat = flat.reshape(-1, int(np.prod(taps)))
    lead = sizes_of(node, data)[:2]
    elements = reshaped(node, data, [*lead, int(np.prod(sizes))])
    windows = relay.take(elements, const(flat), axis=2)
    best = relay.cast(relay.argmax(windows, [3]), "int64")
    rows = const(np.arange(len(flat), dtype="int64") * flat.shape[1])
    found = relay.take(const(flat.reshape(-1)), relay.add(best, rows), axis=0)
    return reshaped(node, found, [*lead, *counts])


@converter("aten::max_unpool2d", "aten::max_unpool3d")
def max_unpool(
    node: TorchNode, input: Expr, indices: Expr, output_size: Any, stride: Any = None, padding: Any = None
) -> Expr:
    """Elements back in the places from which pooling took them, zeros elsewhere."""
    sizes = node.known_ints(output_size, "output_size")
    lead = sizes_of(node, input)[: -len(sizes)]
    whole = int(np.prod(sizes))
    empty = filled(node, 0, [*lead, whole], node.dtype(input))
    values, places = (reshaped(node, one, [*lead, -1]) for one in (input, indices))
    made = relay.scatter(empty, places, values, len(lead))
    return reshaped(node, made, [*lead, *sizes])
