"""Quantised tensors: integers as the numbers they stand for, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from tilewright import relay
from tilewright.relay.expr import Constant, const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tflite.model import Quantization, Tensor
from tilewright.relay.frontend.tflite.node import LiteNode

_STORED: Final = ("uint8", "int8", "int16", "int32", "int64", "int4")


def is_quantized(tensor: Tensor | None) -> bool:
    """True if the integers of a tensor stand for other numbers."""
    return (
        tensor is not None
        and tensor.quantization is not None
        and tensor.dtype in _STORED
        and bool(tensor.quantization.scale.all())
    )


def quantization_of(node: LiteNode, tensor: Tensor) -> Quantization:
    """What the integers of a tensor stand for."""
    if tensor.quantization is None:
        raise node.fail(f"the tensor {tensor.name!r} has no scale")
    return tensor.quantization


def parameters(of: Quantization) -> tuple[Constant, Constant]:
    """Scale and zero point, as scalars or as vectors."""
    if of.per_channel:
        return const(of.scale), const(of.zero_point.astype("int32"))
    return const(of.scale[0]), const(np.int32(of.zero_point[0]))


def dequantized(node: LiteNode, data: Expr, tensor: Tensor) -> Expr:
    """Integers as the numbers they stand for; weights, whose values are at hand, are computed now."""
    of = quantization_of(node, tensor)
    if tensor.value is not None:
        shape = [1] * tensor.value.ndim
        if of.per_channel:
            shape[of.axis] = -1
        scale, zero = of.scale.reshape(shape if shape else ()), of.zero_point.reshape(shape if shape else ())
        numbers = (tensor.value.astype("float32") - zero.astype("float32")) * scale
        return node.scope.stored(tensor.name, numbers.astype("float32"))
    return scaled(data, of)


def scaled(data: Expr, of: Quantization) -> Expr:
    """Any integers as the numbers that those of a tensor stand for."""
    scale, zero = parameters(of)
    return relay.qnn.op.dequantize(data, scale, zero, axis=of.axis if of.per_channel else -1)


def quantized(node: LiteNode, data: Expr, tensor: Tensor) -> Expr:
    """Numbers as integers."""
    of = quantization_of(node, tensor)
    scale, zero = parameters(of)
    axis = of.axis if of.per_channel else -1
    return relay.qnn.op.quantize(data, scale, zero, axis=axis, out_dtype=tensor.dtype)


def requantized(node: LiteNode, data: Expr, source: Tensor, target: Tensor) -> Expr:
    """Integers of one scale and zero point as integers of another."""
    of, to = quantization_of(node, source), quantization_of(node, target)
    if of.same(to) and source.dtype == target.dtype:
        return data
    return relay.qnn.op.requantize(
        data, *parameters(of), *parameters(to), axis=-1, rounding="TONEAREST", out_dtype=target.dtype
    )


def real(node: LiteNode, data: Expr, tensor: Tensor) -> Expr:
    """A tensor as floating-point numbers, whether it is quantised or not."""
    return dequantized(node, data, tensor) if is_quantized(tensor) else data


# Activations


def activated(node: LiteNode, data: Expr, activation: str) -> Expr:
    """Numbers under the activation that an operator includes."""
    if activation == "NONE":
        return data
    if activation == "RELU":
        return relay.nn.relu(data)
    if activation == "RELU6":
        return relay.clip(data, 0, 6)
    if activation == "RELU_N1_TO_1":
        return relay.clip(data, -1, 1)
    if activation == "TANH":
        return relay.tanh(data)
    raise node.fail(f"the activation {activation} is not supported")


_BOUNDS: Final[dict[str, tuple[float | None, float | None]]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


def clamped(node: LiteNode, data: Expr, tensor: Tensor, activation: str) -> Expr:
    """Integers under the activation that an operator includes: those of its bounds."""
    if activation not in _BOUNDS:
        return quantized(node, activated(node, dequantized(node, data, tensor), activation), tensor)
    of = quantization_of(node, tensor)
    limits = np.iinfo(tensor.dtype)
    bounds = activation_limits(activation, float(of.scale[0]), int(of.zero_point[0]), tensor.dtype)
    return data if bounds is None or bounds == (limits.min, limits.max) else relay.clip(data, *bounds)


def activation_limits(activation: str, scale: float, zero: int, dtype: str) -> tuple[int, int] | None:
    """The integers between which an activation keeps those of a scale and zero point; None for one without bounds."""
    if activation not in _BOUNDS:
        return None
    limits = np.iinfo(dtype)
    low, high = _BOUNDS[activation]
    least = limits.min if low is None else max(limits.min, zero + _nearest(low / scale))
    most = limits.max if high is None else min(limits.max, zero + _nearest(high / scale))
    return int(least), int(most)


def _nearest(number: float) -> int:
    return int(np.floor(abs(number) + 0.5) * np.sign(number))
