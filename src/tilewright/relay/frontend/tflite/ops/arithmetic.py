"""Arithmetic that includes an activation, and joining of tensors of different scales."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import Tuple
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tensorflow.ops.elementwise import followed
from tilewright.relay.frontend.tensorflow.ops.shape import joined
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

_FUNCTIONS: dict[str, Any] = {
    "ADD": relay.add,
    "SUB": relay.subtract,
    "MUL": relay.multiply,
    "DIV": relay.divide,
}


@lite_converter("ADD", "SUB", "MUL", "DIV")
def arithmetic(node: LiteNode, left: Expr, right: Expr) -> Expr:
    """Sum, difference, product or quotient, and an activation.

    Sums of integers are taken on the numbers they stand for, and rounded once, as TFLite does; ``qnn.add`` would bring
    each term to the output's scale first, and round three times. Products need one rounding on integers as well.
    """
    output, activation = node.outputs[0], str(node.attr("activation", "NONE"))
    tensors = (node.input(0), node.input(1), output)
    if node.op_type == "MUL" and all(is_quantized(one) and one.dtype in ("uint8", "int8") for one in tensors):
        given = [one for tensor in tensors for one in parameters(quantization_of(node, tensor))]
        return clamped(node, relay.qnn.op.mul(left, right, *given), output, activation)
    numbers = [real(node, data, node.input(place)) for place, data in enumerate((left, right))]
    made = followed(node, *numbers) or _FUNCTIONS[node.op_type](*numbers)
    made = activated(node, made, activation)
    return quantized(node, made, output) if is_quantized(output) else made


@lite_converter("CONCATENATION")
def concatenation(node: LiteNode, *parts: Expr) -> Expr:
    """Tensors one after the other along an axis."""
    axis = node.axis(0, node.rank(parts[0]))
    output, activation = node.outputs[0], str(node.attr("activation", "NONE"))
    if not is_quantized(output):
        return activated(node, joined(node, list(parts), axis), activation)
    pairs = [parameters(quantization_of(node, node.input(place))) for place in range(len(parts))]
    made = relay.qnn.op.concatenate(
        Tuple(list(parts)),
        Tuple([scale for scale, _ in pairs]),
        Tuple([zero for _, zero in pairs]),
        *parameters(quantization_of(node, output)),
        axis=axis,
    )
    return clamped(node, made, output, activation)


@lite_converter("L2_NORMALIZATION")
def l2_normalization(node: LiteNode, data: Expr) -> Expr:
    """Vectors along the last axis divided by their lengths."""
    numbers = real(node, data, node.input(0))
    made: Expr = relay.nn.l2_normalize(numbers, eps=1e-12, axis=[node.rank(data) - 1])
    made = activated(node, made, str(node.attr("activation", "NONE")))
    return quantized(node, made, node.outputs[0]) if is_quantized(node.outputs[0]) else made


@lite_converter("SOFTMAX")
def softmax(node: LiteNode, data: Expr) -> Expr:
    """Softmax along the last axis of the elements times beta."""
    numbers = real(node, data, node.input(0))
    beta = float(node.attr("beta", 1.0))
    if beta != 1.0:
        numbers = relay.multiply(numbers, node.constant(beta, numbers))
    made = relay.nn.softmax(numbers, axis=-1)
    return quantized(node, made, node.outputs[0]) if is_quantized(node.outputs[0]) else made
