"""Convolutions and linear layers with quantised weights: products of integers, which are quantised again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import Constant
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.torch.node import Expr
from tilewright.relay.frontend.torch.ops.convolution import convolution
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.quantized.arithmetic import (
    quantized_to,
    require_quantized,
    shifted,
)
from tilewright.relay.frontend.torch.script.quantized.packed import Packed, bias_of, unpacked
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import Quantization, Tensor


def _factor(node: ScriptNode, of: Quantization, packed: Packed, rank: int, axis: int) -> Expr:
    """What one unit of the integer product stands for: a number, or one for each output channel."""
    scale = packed.quantization.scale
    if isinstance(of.scale, (int, float)) and not isinstance(scale, Expr):
        return node.cast(float(np.float32(of.scale) * np.float32(scale)), "float32")
    if isinstance(scale, Constant):
        scale = Constant(scale.data.numpy().reshape([-1] + [1] * (rank - 1 - axis)).astype("float32"))
    return relay.multiply(node.cast(of.scale, "float32"), node.cast(scale, "float32"))


def scaled(
    node: ScriptNode, product: Expr, of: Quantization, packed: Packed, axis: int, with_relu: bool
) -> Expr:
    """An integer product as the numbers that it stands for, with the bias, and without what is below zero."""
    product, bias = bias_of(node, packed, of.scale, product, axis)
    factor = _factor(node, of, packed, node.rank(product), axis)
    numbers = relay.multiply(relay.cast(product, "float32"), factor)
    if bias is not None:
        numbers = relay.nn.bias_add(numbers, bias, axis=axis)
    return relay.nn.relu(numbers) if with_relu else numbers


# Linear


def integer_linear(node: ScriptNode, data: Expr, packed: Packed) -> Expr:
    """The product of integers and the rows of a weight; leading dimensions are batches."""
    sizes = sizes_of(node, data)
    rows = data if len(sizes) == 2 else reshaped(node, data, [multiplied(sizes[:-1]), sizes[-1]])
    weight = shifted(node, packed.weight, packed.quantization)
    product = relay.nn.dense(rows, weight, units=node.static_shape(packed.weight)[0], out_dtype="int32")
    return (
        product
        if len(sizes) == 2
        else reshaped(node, product, [*sizes[:-1], node.static_shape(packed.weight)[0]])
    )


def _linear(
    node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any, with_relu: bool
) -> Tensor:
    of = require_quantized(node, data)
    packed = unpacked(node, parameters, "linear_unpack")
    product = integer_linear(node, shifted(node, node.store.read(data), of), packed)
    numbers = scaled(node, product, of, packed, node.rank(product) - 1, with_relu)
    return quantized_to(node, numbers, scale, zero, of.dtype)


@operator("quantized::linear")
def linear(node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any) -> Tensor:
    """A linear layer."""
    return _linear(node, data, parameters, scale, zero, False)


@operator("quantized::linear_relu")
def linear_relu(node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any) -> Tensor:
    """A linear layer and a ReLU."""
    return _linear(node, data, parameters, scale, zero, True)


# Convolution


def _convolution(
    node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any, with_relu: bool = False
) -> Tensor:
    name = node.op_type.removeprefix("quantized::").removesuffix("_relu")
    of = require_quantized(node, data)
    packed = unpacked(node, parameters, f"{name}_unpack")
    asked = torch_package().ops.quantized
    # Convolutions over one axis are packed as those over two.
    rank = int(name[-2])
    output_padding: Any = 0
    stride, padding, dilation = (
        list(getattr(asked, f"{name}_{setting}")(parameters.item)) if rank > 1 else None
        for setting in ("stride", "padding", "dilation")
    )
    if rank == 1:
        stride, padding, dilation, groups = _settings_1d(parameters)
        transposed = "transpose" in name
    else:
        groups = int(getattr(asked, f"{name}_groups")(parameters.item))
        transposed = bool(getattr(asked, f"{name}_transpose")(parameters.item))
        if transposed:
            output_padding = list(getattr(asked, f"{name}_output_padding")(parameters.item))
    product = convolution(
        node,
        shifted(node, node.store.read(data), of),
        shifted(node, packed.weight, packed.quantization),
        None,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
    )
    numbers = scaled(node, product, of, packed, node.rank(product) - 1 - rank, with_relu)
    return quantized_to(node, numbers, scale, zero, of.dtype)


def _settings_1d(parameters: Any) -> tuple[Any, Any, Any, int]:
    """The settings of a convolution over one axis, which is stored with a leading axis of one element."""
    asked = torch_package().ops.quantized
    packed = parameters.item
    return (
        list(asked.conv2d_stride(packed))[-1:],
        list(asked.conv2d_padding(packed))[-1:],
        list(asked.conv2d_dilation(packed))[-1:],
        int(asked.conv2d_groups(packed)),
    )


@operator(
    "quantized::conv1d", "quantized::conv2d.new", "quantized::conv3d.new", "quantized::conv_transpose2d"
)
def conv(node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any) -> Tensor:
    """A convolution, plain or transposed."""
    return _convolution(node, data, parameters, scale, zero)


@operator("quantized::conv1d_relu", "quantized::conv2d_relu.new", "quantized::conv3d_relu.new")
def conv_relu(node: ScriptNode, data: Tensor, parameters: Any, scale: Any, zero: Any) -> Tensor:
    """A convolution and a ReLU."""
    return _convolution(node, data, parameters, scale, zero, True)


# Normalisation


@operator(
    "quantized::batch_norm1d", "quantized::batch_norm2d", "quantized::batch_norm3d", "quantized::batch_norm"
)
def batch_norm(
    node: ScriptNode,
    data: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    epsilon: Any,
    scale: Any,
    zero: Any,
) -> Tensor:
    """Normalisation with the statistics of training."""
    return _batch_norm(node, data, (weight, bias, mean, variance), epsilon, scale, zero, False)


@operator("quantized::batch_norm1d_relu", "quantized::batch_norm2d_relu", "quantized::batch_norm3d_relu")
def batch_norm_relu(
    node: ScriptNode,
    data: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    epsilon: Any,
    scale: Any,
    zero: Any,
) -> Tensor:
    """Normalisation with the statistics of training, and a ReLU."""
    return _batch_norm(node, data, (weight, bias, mean, variance), epsilon, scale, zero, True)


def _batch_norm(
    node: ScriptNode, data: Tensor, parameters: Any, epsilon: float, scale: Any, zero: Any, with_relu: bool
) -> Tensor:
    of = require_quantized(node, data)
    numbers = relay.cast(shifted(node, node.store.read(data), of), "float32")
    numbers = relay.multiply(numbers, node.cast(of.scale, "float32"))
    weight, bias, mean, variance = (node.resolved(one) for one in parameters)
    weight = relay.ones_like(mean) if weight is None else weight
    bias = relay.zeros_like(mean) if bias is None else bias
    made = relay.nn.batch_norm(numbers, weight, bias, mean, variance, axis=1, epsilon=epsilon)[0]
    return quantized_to(node, relay.nn.relu(made) if with_relu else made, scale, zero, of.dtype)
