"""Convolutions and fully connected layers, in floating point, quantised, and with quantised weights only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.ops.convolution import convolved, transposed, transposed_window
from tilewright.relay.frontend.tensorflow.ops.windows import Window, fitted_window, window_of
from tilewright.relay.frontend.tflite.model import Quantization, Tensor
from tilewright.relay.frontend.tflite.node import LiteNode
from tilewright.relay.frontend.tflite.quantization import (
    activated,
    clamped,
    is_quantized,
    parameters,
    quantization_of,
    quantized,
    real,
)
from tilewright.relay.frontend.tflite.registry import lite_converter


def with_window(node: LiteNode) -> LiteNode:
    """The node with its steps and distances under TensorFlow's names."""
    for name, option, default in (("strides", "stride", 1), ("dilations", "dilation", 1)):
        rows, columns = (int(node.attr(f"{option}_{axis}", default)) for axis in "hw")
        node.attributes[name] = [1, rows, columns, 1]
        depth = node.attr(f"{option}_d", None)
        if depth is not None:
            node.attributes[name] = [1, int(depth), rows, columns, 1]
    return node


def is_integer_layer(node: LiteNode, data: int, weight: int) -> bool:
    """True if the data and the weight are both quantised, in types that integer products take."""
    given, kernel = node.input(data), node.input(weight)
    return (
        is_quantized(given)
        and is_quantized(kernel)
        and given.dtype in ("uint8", "int8")
        and kernel.dtype in ("uint8", "int8")
        and is_quantized(node.outputs[0])
    )


def with_bias(node: LiteNode, made: Expr, bias: Expr | None, place: int) -> Expr:
    """A number for each channel added."""
    if bias is None:
        return made
    tensor = node.inputs[place]
    known = real(node, bias, tensor) if tensor is not None else bias
    return relay.nn.bias_add(made, known, axis=node.rank(made) - 1)


def finished(node: LiteNode, made: Expr) -> Expr:
    """Numbers under the layer's activation, as the output has them."""
    made = activated(node, made, str(node.attr("activation", "NONE")))
    return quantized(node, made, node.outputs[0]) if is_quantized(node.outputs[0]) else made


def rescaled(node: LiteNode, sums: Expr, data: Quantization, kernel: Quantization, bias: Expr | None) -> Expr:
    """Integer sums with their bias as integers of the output, under the layer's activation.

    8-bit layers are scaled in float32 and rounded to even, as the kernels do which TensorFlow's interpreter uses by
    default (XNNPACK's); its kernels of other types multiply by fixed-point numbers.
    """
    last = node.rank(sums) - 1
    if bias is not None:
        sums = relay.nn.bias_add(sums, bias, axis=last)
    output = node.outputs[0]
    scale = (data.scale[0].astype("float64") * kernel.scale.astype("float64")).astype("float32")
    given = const(scale) if kernel.per_channel else const(scale[0])
    is_byte = output.dtype in ("int8", "uint8")
    made = relay.qnn.op.requantize(
        sums,
        given,
        const(np.int32(0)),
        *parameters(quantization_of(node, output)),
        axis=last if kernel.per_channel else -1,
        rounding="TOEVEN" if is_byte else "TONEAREST",
        out_dtype=output.dtype,
        compute_dtype="float32" if is_byte else "int64",
    )
    return clamped(node, made, output, str(node.attr("activation", "NONE")))


def permuted_values(tensor: Tensor, weight: Any, axes: tuple[int, ...]) -> Expr:
    """An integer weight with its axes in another order."""
    if tensor.value is None:
        return relay.transpose(weight, axes)
    return const(np.ascontiguousarray(tensor.value.transpose(axes)))


# Convolutions


def _zero(node: LiteNode) -> int:
    """What stands for zero in the data."""
    given = node.input(0)
    return int(quantization_of(node, given).zero_point[0]) if is_quantized(given) else 0


def _integer_convolution(
    node: LiteNode, data: Expr, kernel: Expr, window: Window, groups: int, channels: int, layout: str
) -> Expr:
    of, weight = (quantization_of(node, node.input(place)) for place in (0, 1))
    scale, zero = parameters(of)
    kernel_scale, kernel_zero = parameters(weight)
    if not weight.zero_point.any():
        kernel_zero = const(np.int32(0))
    return relay.qnn.op.conv2d(
        data,
        kernel,
        zero,
        kernel_zero,
        scale,
        kernel_scale,
        kernel_size=window.kernel,
        channels=channels,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=groups,
        data_layout="NHWC",
        kernel_layout=layout,
        out_dtype="int32",
    )


@lite_converter("CONV_2D")
def conv2d(node: LiteNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution; the kernel's axes are outputs, rows, columns, inputs."""
    outputs, rows, columns, inputs = node.static_shape(weight, "the kernel")
    data, window = fitted_window(with_window(node), data, "NHWC", (rows, columns), _zero(node))
    if is_integer_layer(node, 0, 1):
        channels = node.shape(data)[-1] or inputs
        kernel = permuted_values(node.input(1), weight, (1, 2, 3, 0))
        sums = _integer_convolution(node, data, kernel, window, channels // inputs, outputs, "HWIO")
        of, to = (quantization_of(node, node.input(place)) for place in (0, 1))
        return rescaled(node, sums, of, to, bias)
    kernel = node.permuted(real(node, weight, node.input(1)), (1, 2, 3, 0))
    made = convolved(node, real(node, data, node.input(0)), kernel, window, "NHWC")
    return finished(node, with_bias(node, made, bias, 2))


@lite_converter("DEPTHWISE_CONV_2D")
def depthwise_conv2d(node: LiteNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution of each channel by kernels of its own: one, rows, columns, outputs."""
    _, rows, columns, outputs = node.static_shape(weight, "the kernel")
    data, window = fitted_window(with_window(node), data, "NHWC", (rows, columns), _zero(node))
    channels = outputs // max(int(node.attr("multiplier", 1)), 1)
    if is_integer_layer(node, 0, 1):
        kernel = permuted_values(node.input(1), weight, (1, 2, 3, 0))
        sums = _integer_convolution(node, data, kernel, window, channels, outputs, "HWOI")
        of, to = (quantization_of(node, node.input(place)) for place in (0, 1))
        return rescaled(node, sums, of, to, bias)
    kernel = node.permuted(real(node, weight, node.input(1)), (1, 2, 3, 0))
    made = relay.nn.conv2d(
        real(node, data, node.input(0)),
        kernel,
        strides=window.strides,
        padding=window.padding,
        dilation=window.dilations,
        groups=channels,
        channels=outputs,
        kernel_size=window.kernel,
        data_layout="NHWC",
        kernel_layout="HWOI",
    )
    return finished(node, with_bias(node, made, bias, 2))


@lite_converter("CONV_3D")
def conv3d(node: LiteNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution of volumes; the kernel's axes are space, inputs, outputs."""
    window = window_of(with_window(node), data, "NDHWC", node.static_shape(weight, "the kernel")[:3])
    made = convolved(node, data, weight, window, "NDHWC")
    return finished(node, with_bias(node, made, bias, 2))


@lite_converter("TRANSPOSE_CONV")
def transpose_conv(node: LiteNode, sizes: Expr, weight: Expr, data: Expr, bias: Expr | None = None) -> Expr:
    """A transposed convolution; the kernel's axes are outputs, rows, columns, inputs."""
    with_window(node)
    wanted = node.ints(sizes, "the sizes")
    kernel = node.permuted(real(node, weight, node.input(1)), (1, 2, 0, 3))
    rows, columns = node.static_shape(weight, "the kernel")[1:3]
    window, more = transposed_window(node, data, "NHWC", (rows, columns), tuple(wanted[1:3]))
    made = transposed(node, real(node, data, node.input(2)), kernel, window, more, "NHWC")
    return finished(node, with_bias(node, made, bias, 3))


@lite_converter("CONV_3D_TRANSPOSE")
def conv3d_transpose(node: LiteNode, sizes: Expr, weight: Expr, data: Expr, bias: Expr | None = None) -> Expr:
    """A transposed convolution of volumes; the kernel's axes are space, outputs, inputs."""
    with_window(node)
    wanted = node.ints(sizes, "the sizes")
    kernel = node.static_shape(weight, "the kernel")[:3]
    window, more = transposed_window(node, data, "NDHWC", kernel, tuple(wanted[1:4]))
    made = transposed(node, data, weight, window, more, "NDHWC")
    return finished(node, with_bias(node, made, bias, 3))


# Fully connected


@lite_converter("FULLY_CONNECTED")
def fully_connected(node: LiteNode, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """The product of rows and a weight (outputs, inputs)."""
    if int(node.attr("weights_format", 0)):
        raise node.fail("shuffled weights are not supported")
    units, features = node.static_shape(weight, "the weight")
    lead = sizes_of(node, data)[:-1]
    rows = (
        data
        if node.rank(data) == 2 and node.shape(data)[-1] == features
        else reshaped(node, data, [-1, features])
    )
    if is_integer_layer(node, 0, 1):
        of, to = (quantization_of(node, node.input(place)) for place in (0, 1))
        scale, zero = parameters(of)
        kernel_scale, kernel_zero = parameters(to)
        if not to.zero_point.any():
            kernel_zero = const(np.int32(0))
        sums = relay.qnn.op.dense(rows, weight, zero, kernel_zero, scale, kernel_scale, units=units)
        made = rescaled(node, sums, of, to, bias)
    else:
        numbers = real(node, weight, node.input(1))
        product = relay.nn.dense(real(node, rows, node.input(0)), numbers, units=units)
        made = finished(node, with_bias(node, product, bias, 2))
    if node.attr("keep_num_dims", False):
        return reshaped(node, made, [*lead, units])
    return made
