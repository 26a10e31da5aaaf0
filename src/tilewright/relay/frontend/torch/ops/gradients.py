"""The gradients that are operators of their own, as the graphs of training steps have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.convolution import convolution
from tilewright.relay.frontend.torch.ops.creation import filled
from tilewright.relay.frontend.torch.ops.resizing import times_matrix
from tilewright.relay.frontend.torch.registry import converter

Array = np.ndarray[Any, Any]


@converter("aten::embedding_dense_backward")
def embedding_dense_backward(
    node: TorchNode,
    grad_output: Expr,
    indices: Expr,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Expr:
    """Gradients added up in the rows that were read."""
    width = sizes_of(node, grad_output)[-1]
    rows = reshaped(node, grad_output, [-1, width])
    places = reshaped(node, relay.cast(indices, "int64"), [-1])
    dtype = node.dtype(rows)
    if padding_idx >= 0:
        kept = relay.not_equal(places, const(padding_idx, "int64"))
        rows = relay.where(relay.expand_dims(kept, 1), rows, node.constant(0.0, dtype))
    if scale_grad_by_freq:
        counts = relay.scatter_add(
            relay.zeros((num_weights,), dtype), places, relay.ones_like(relay.cast(places, dtype)), 0
        )
        rows = relay.divide(rows, relay.expand_dims(relay.take(counts, places, axis=0), 1))
    empty = filled(node, 0, [num_weights, width], dtype)
    return relay.scatter_nd(empty, relay.expand_dims(places, 0), rows, "add")


@converter("aten::native_layer_norm_backward")
def native_layer_norm_backward(
    node: TorchNode, grad_out: Expr, input: Expr, normalized_shape: Any, mean: Expr, rstd: Expr,
    weight: Expr | None, bias: Expr | None, output_mask: list[bool],
) -> list[Expr | None]:  # fmt: skip
    """Of the data, the weight and the bias."""
    rank = node.rank(input)
    inner = list(range(rank - len(normalized_shape), rank))
    outer = list(range(rank - len(normalized_shape)))
    shown = relay.multiply(relay.subtract(input, mean), rstd)
    scaled = grad_out if weight is None else relay.multiply(grad_out, weight)
    middle = relay.mean(scaled, inner, keepdims=True)
    along = relay.multiply(shown, relay.mean(relay.multiply(scaled, shown), inner, keepdims=True))
    of_data = relay.multiply(relay.subtract(relay.subtract(scaled, middle), along), rstd)
    return [
        of_data if output_mask[0] else None,
        relay.sum(relay.multiply(grad_out, shown), outer) if output_mask[1] and weight is not None else None,
        relay.sum(grad_out, outer) if output_mask[2] and bias is not None else None,
    ]


@converter("aten::native_group_norm_backward")
def native_group_norm_backward(
    node: TorchNode, grad_out: Expr, input: Expr, mean: Expr, rstd: Expr, weight: Expr | None, N: Any, C: Any,
    HxW: Any, group: int, output_mask: list[bool],
) -> list[Expr | None]:  # fmt: skip
    """Of the data, the weight and the bias."""
    sizes = sizes_of(node, input)
    rank = node.rank(input)
    others = [axis for axis in range(rank) if axis != 1]
    lines = [sizes[0], group, -1]
    data = reshaped(node, input, lines)
    middle, inverse = relay.expand_dims(mean, 2), relay.expand_dims(rstd, 2)
    shown = relay.multiply(relay.subtract(data, middle), inverse)
    whole = reshaped(node, shown, sizes)
    scaled = grad_out
    if weight is not None:
        scaled = relay.multiply(grad_out, relay.reshape(weight, [-1] + [1] * (rank - 2)))
    given = reshaped(node, scaled, lines)
    level = relay.mean(given, [2], keepdims=True)
    along = relay.multiply(shown, relay.mean(relay.multiply(given, shown), [2], keepdims=True))
    of_data = relay.multiply(relay.subtract(relay.subtract(given, level), along), inverse)
    return [
        reshaped(node, of_data, sizes) if output_mask[0] else None,
        relay.sum(relay.multiply(grad_out, whole), others) if output_mask[1] else None,
        relay.sum(grad_out, others) if output_mask[2] else None,
    ]


# Pooling


@converter("aten::max_pool2d_with_indices_backward")
def max_pool_backward(
    node: TorchNode, grad_output: Expr, input: Expr, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: Expr,
) -> Expr:  # fmt: skip
    """Gradients added up where the greatest elements were."""
    sizes = sizes_of(node, input)
    lead = sizes[:-2]
    empty = filled(node, 0, [*lead, multiplied(sizes[-2:])], node.dtype(input))
    values, places = (reshaped(node, one, [*lead, -1]) for one in (grad_output, indices))
    return reshaped(node, relay.scatter_add(empty, places, values, len(lead)), sizes)


def _mean_matrix(windows: list[tuple[int, int]], counts: list[float], size: int) -> Array:
    """The share of each element in the mean of each window: (windows, size)."""
    matrix = np.zeros((len(windows), size))
    for row, ((begin, end), count) in enumerate(zip(windows, counts, strict=True)):
        matrix[row, max(begin, 0) : max(min(end, size), 0)] = 1 / count
    return matrix


@converter("aten::avg_pool2d_backward")
def avg_pool_backward(
    node: TorchNode, grad_output: Expr, input: Expr, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Expr:  # fmt: skip
    """Gradients spread over the windows."""
    kernel = node.spread(kernel_size, 2, "kernel_size")
    steps = node.spread(stride, 2, "stride") if stride else kernel
    before = node.spread(padding, 2, "padding")
    rank = node.rank(input)
    made = grad_output
    for place in range(2):
        axis = rank - 2 + place
        size, count = node.known_size(input, axis), node.known_size(grad_output, axis)
        begins = [number * steps[place] - before[place] for number in range(count)]
        ends = [min(begin + kernel[place], size + before[place]) for begin in begins]
        windows = list(zip(begins, ends, strict=True))
        if divisor_override is not None:
            divisors = [float(divisor_override) if place == 0 else 1.0] * count
        elif count_include_pad:
            divisors = [float(end - begin) for begin, end in windows]
        else:
            divisors = [float(min(end, size) - max(begin, 0)) for begin, end in windows]
        made = times_matrix(node, made, axis, _mean_matrix(windows, divisors, size).T)
    return made


@converter("aten::_adaptive_avg_pool2d_backward")
def adaptive_avg_pool_backward(node: TorchNode, grad_output: Expr, input: Expr) -> Expr:
    """Gradients spread over windows that divide the data."""
    rank = node.rank(input)
    made = grad_output
    for axis in (rank - 2, rank - 1):
        size, count = node.known_size(input, axis), node.known_size(grad_output, axis)
        windows = [(number * size // count, -(-(number + 1) * size // count)) for number in range(count)]
        divisors = [float(end - begin) for begin, end in windows]
        made = times_matrix(node, made, axis, _mean_matrix(windows, divisors, size).T)
    return made


# Convolutions


@converter("aten::convolution_backward")
def convolution_backward(
    node: TorchNode, grad_output: Expr, input: Expr, weight: Expr, bias_sizes: Any, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, output_mask: list[bool],
) -> list[Expr | None]:  # fmt: skip
    """Of the data, the weight and the bias."""
    rank = node.rank(weight) - 2
    steps, before, apart = (
        node.spread(one, rank, name)
        for one, name in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))
    )
    made: list[Expr | None] = [None, None, None]
    if output_mask[0]:
        made[0] = _of_data(node, grad_output, input, weight, steps, before, apart, transposed, groups)
    if output_mask[1]:
        small, large = (input, grad_output) if transposed else (grad_output, input)
        made[1] = _of_weight(node, small, large, weight, steps, before, apart, groups)
    if output_mask[2]:
        made[2] = relay.sum(grad_output, [0, *range(2, rank + 2)])
    return made


def _of_data(
    node: TorchNode, gradient: Expr, data: Expr, weight: Expr, steps: list[int], before: list[int],
    apart: list[int], transposed: bool, groups: int,
) -> Expr:  # fmt: skip
    """The other kind of convolution, of the gradient."""
    if transposed:
        return convolution(node, gradient, weight, None, steps, before, apart, False, 0, groups)
    kernel = node.static_shape(weight)[2:]
    wanted, given = node.static_shape(data)[2:], node.static_shape(gradient)[2:]
    more = [
        size - ((count - 1) * step - 2 * width + gap * (length - 1) + 1)
        for size, count, step, width, gap, length in zip(
            wanted, given, steps, before, apart, kernel, strict=True
        )
    ]
    return convolution(node, gradient, weight, None, steps, before, apart, True, more, groups)


def _of_weight(
    node: TorchNode, small: Expr, large: Expr, weight: Expr, steps: list[int], before: list[int], apart: list[int],
    groups: int,
) -> Expr:  # fmt: skip
    """A convolution of the larger image by the smaller one, in which members of the batch are summed: steps between
    windows become distances between taps, and the other way around."""
    rank = len(steps)
    kernel = node.static_shape(weight)[2:]
    swap = [1, 0, *range(2, rank + 2)]
    images = relay.split(relay.transpose(large, swap), groups, 0)
    kernels = relay.split(relay.transpose(small, swap), groups, 0)
    parts: list[Expr] = []
    for number in range(groups):
        found = convolution(node, images[number], kernels[number], None, apart, before, steps, False, 0, 1)
        cut = relay.strided_slice(found, [0] * rank, list(kernel), [1] * rank, axes=list(range(2, rank + 2)))
        parts.append(relay.transpose(cut, swap))
    return parts[0] if groups == 1 else relay.concatenate(parts, 0)
