"""Fourier transforms, of whole signals and of frames, and mel filters."""

from __future__ import annotations

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common import fourier
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import arange, check_constants, combined, extent, part
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name


@converter("DFT", since=17)
def dft_along_attribute(node: Node, data: Expr, length: Expr | None = None) -> Expr:
    """Opset 17: the axis is an attribute."""
    return _dft(node, data, length, node.axis(1, node.rank(data)))


@converter("DFT", since=20)
def dft(node: Node, data: Expr, length: Expr | None = None, axis: Expr | None = None) -> Expr:
    """Opset 20: the axis is an input."""
    chosen = -2 if axis is None else node.ints(axis, "the axis")[0]
    rank = node.rank(data)
    if not -rank <= chosen < rank or chosen % rank == rank - 1:
        raise node.fail(
            f"the axis {chosen} is out of range for {rank} dimensions, the last being that of parts"
        )
    return _dft(node, data, length, chosen % rank)


def _dft(node: Node, data: Expr, length: Expr | None, axis: int) -> Expr:
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    size = node.shape(data)[axis]
    if size is None:
        size = node.static_shape(data)[axis]
    if length is not None:
        count = node.ints(length, "the length")[0]
    else:
        count = 2 * (size - 1) if inverse and onesided else size
    return transformed(node, data, axis, count, inverse, onesided)


def transformed(node: Node, data: Expr, axis: int, count: int, inverse: bool, onesided: bool) -> Expr:
    """The transform of ``count`` elements along an axis of data whose last axis holds real and imaginary parts."""
    parts = node.shape(data)[-1]
    if parts is None:
        parts = node.static_shape(data)[-1]
    if parts not in (1, 2):
        raise node.fail(f"the shape {node.shape(data)} is neither that of real nor of complex signals")
    rank = node.rank(data) - 1
    values = [relay.squeeze(part(data, number, number + 1, rank), axis=[rank]) for number in range(parts)]
    real, imaginary = fourier.transformed(
        node,
        (values[0], values[1] if parts == 2 else None),
        axis,
        count,
        inverse=inverse,
        onesided=onesided,
        scale=1 / count if inverse and count else 1.0,
    )
    return relay.stack([real] if imaginary is None else [real, imaginary], axis=rank)


@converter("STFT", since=17)
def stft(
    node: Node,
    signal: Expr,
    step: Expr,
    window: Expr | None = None,
    length: Expr | None = None,
) -> Expr:
    """The transforms of frames of a signal (batch, length, parts)."""
    hop = node.ints(step, "the frame step")[0]
    if length is not None:
        count = node.ints(length, "the frame length")[0]
    elif window is not None and node.shape(window)[0] is not None:
        count = int(node.shape(window)[0] or 0)
    else:
        raise node.fail("neither a window nor a frame length is given")
    if hop < 1 or count < 1:
        raise node.fail(f"frames of {count} elements every {hop} are not possible")
    check_constants(node, count)
    size = extent(node, signal, 1)
    frames = combined(combined(size, count, lambda a, b: a - b), hop, lambda a, b: a // b)
    frames = combined(frames, 1, lambda a, b: a + b)
    if isinstance(frames, int) and frames < 1:
        raise node.fail(f"the signal is shorter than a frame of {count} elements")
    starts = relay.expand_dims(arange(frames) * const(hop, "int64"), axis=1)
    places = starts + const(np.arange(count, dtype="int64")[None])
    taken = relay.take(signal, places, axis=1)
    if window is not None:
        taken = taken * relay.reshape(window, (1, 1, -1, 1))
    return transformed(node, taken, 2, count, False, bool(node.attr("onesided", 1)))


@converter("MelWeightMatrix", since=17)
def mel_weight_matrix(node: Node, bins: Expr, length: Expr, rate: Expr, low: Expr, high: Expr) -> Expr:
    """The triangular filters, evenly spaced on the mel scale, that turn a spectrum into mel bins."""
    filters, size, samples = (
        node.ints(value, what)[0]
        for value, what in ((bins, "the number of bins"), (length, "the length"), (rate, "the sample rate"))
    )
    ends = [float(node.required_value(value, "an edge of the spectrum").reshape(())) for value in (low, high)]
    if not 0 < filters <= 1 << 16 or not 0 < size <= 1 << 20 or samples < 1:
        raise node.fail(f"{filters} filters over a spectrum of {size} elements are not supported")
    lowest, highest = (2595 * np.log10(1 + hertz / 700) for hertz in ends)
    places = lowest + np.arange(filters + 2) * (highest - lowest) / (filters + 2)
    edges = np.floor((size + 1) * 700 * (10 ** (places / 2595) - 1) / samples).astype(np.int64)
    spectrum = np.arange(size // 2 + 1)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (spectrum - left) / np.maximum(centre - left, 1)
    falling = (right - spectrum) / np.maximum(right - centre, 1)
    made = np.where((spectrum >= left) & (spectrum <= centre), rising, 0.0)
    made = np.where((spectrum >= centre) & (spectrum < right), falling, made)
    made = np.where((left == centre) & (spectrum == centre) & (right == centre), 1.0, made)
    return const(made, dtype_name(int(node.attr("output_datatype", 1))))
