"""Softmax, normalisation, matrix products and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any
"""A NumPy array."""


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """Exponentials, divided by their sum along an axis."""
    exponentials = np.exp(a_np - a_np.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """The logarithm of ``softmax_python``."""
    moved = a_np - a_np.max(axis=axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """Each element divided by a power of the mean square of its ``size`` neighbours along an axis."""
    radius = size // 2
    squares = np.moveaxis(a_np.astype("float64") ** 2, axis, 0)
    sums = np.stack(
        [squares[max(place - radius, 0) : place + radius + 1].sum(0) for place in range(len(squares))]
    )
    divisor = (bias + alpha / size * np.moveaxis(sums, 0, axis)) ** beta
    return (a_np / divisor).astype(a_np.dtype)


def l2_normalize_python(a_np: Array, eps: float, axis: int | Sequence[int] | None = None) -> Array:
    """The elements divided by their Euclidean length, or by the root of ``eps`` where that is larger."""
    axes = None if axis is None else tuple(axis) if isinstance(axis, list) else axis
    sums = np.sum(np.square(a_np), axis=axes, keepdims=True)
    return a_np / np.sqrt(np.maximum(sums, eps))


def batch_matmul(
    x: Array, y: Array, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """The product of each matrix of a batch with another, which is transposed unless ``trans_y`` says no."""
    left = x.swapaxes(-1, -2) if trans_x else x
    right = y.swapaxes(-1, -2) if trans_y else y
    dtype = out_dtype or x.dtype
    return np.matmul(left.astype(dtype), right.astype(dtype))


def dense(
    x: Array,
    y: Array,
    bias: Array,
    use_bias: bool = False,
    use_relu: bool = False,
    out_dtype: str | None = None,
) -> Array:
    """``x`` times the transpose of ``y``, with a bias and a rectifier where they are asked for."""
    dtype = out_dtype or x.dtype
    result = x.astype(dtype) @ y.astype(dtype).T
    if use_bias:
        result = result + bias
    if use_relu:
        result = np.maximum(result, 0)
    return result.astype(dtype)


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean", ignore_index: int = -100
) -> Array:
    """The negative log likelihood of the target classes, weighed; the class is the second axis."""
    kept = targets != ignore_index
    classes = np.where(kept, targets, 0)
    chosen = np.take_along_axis(predictions, np.expand_dims(classes, 1), 1).squeeze(1)
    weight = np.where(kept, weights[classes], 0).astype(predictions.dtype)
    losses = -chosen * weight
    if reduction == "none":
        return losses
    total: Array = np.sum(losses)
    return total / np.sum(weight) if reduction == "mean" else total
