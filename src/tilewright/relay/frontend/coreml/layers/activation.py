"""Activations and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.registry import LAYERS

_KINDS = (
    "linear",
    "ReLU",
    "leakyReLU",
    "thresholdedReLU",
    "PReLU",
    "tanh",
    "scaledTanh",
    "sigmoid",
    "sigmoidHard",
    "ELU",
    "softsign",
    "softplus",
    "parametricSoftplus",
)


def softplus(node: ModelNode, data: Expr) -> Expr:
    """``log(1 + exp(x))`` without overflow."""
    rest = relay.exp(relay.negative(relay.abs(data)))
    return relay.add(relay.nn.relu(data), relay.log(relay.add(rest, node.constant(1, data))))


def elu(node: ModelNode, data: Expr, alpha: float) -> Expr:
    """Exponential below zero."""
    grown = relay.subtract(relay.exp(relay.minimum(data, node.constant(0, data))), node.constant(1, data))
    return relay.add(relay.nn.relu(data), relay.multiply(grown, node.constant(alpha, data)))


def linear(node: ModelNode, data: Expr, alpha: float, beta: float) -> Expr:
    """``alpha * x + beta``."""
    return relay.add(relay.multiply(data, node.constant(alpha, data)), node.constant(beta, data))


def gelu(node: ModelNode, data: Expr, mode: str) -> Expr:
    """The Gaussian error linear unit, or an approximation by tanh or by the logistic function."""
    if mode == "SIGMOID_APPROXIMATION":
        return relay.multiply(data, relay.sigmoid(relay.multiply(data, node.constant(1.702, data))))
    if mode == "TANH_APPROXIMATION":
        cube = relay.multiply(relay.multiply(data, data), relay.multiply(data, node.constant(0.044715, data)))
        bend = relay.tanh(relay.multiply(relay.add(data, cube), node.constant(math.sqrt(2 / math.pi), data)))
    elif mode == "EXACT":
        bend = relay.erf(relay.multiply(data, node.constant(math.sqrt(0.5), data)))
    else:
        raise node.fail(f"the mode {mode!r} is not known")
    half = relay.multiply(data, node.constant(0.5, data))
    return relay.multiply(half, relay.add(bend, node.constant(1, data)))


def _per_channel(node: LayerNode, weights: Message, data: Expr, role: str) -> Expr:
    """A number for all, or one for each channel."""
    axis = node.channel_axis(data)
    channels = node.static_shape(data)[axis]
    single = len(weights.floatValue) == 1
    shape = [1] * node.rank(data)
    if not single:
        shape[axis] = channels
    return node.weight(weights, shape, role)


def activated(node: LayerNode, data: Expr, params: Message) -> Expr:
    """An activation by its message."""
    kind = params.which(*_KINDS)
    if not kind:
        raise node.fail("the activation has no kind")
    chosen = getattr(params, kind)
    simple: dict[str, Callable[[], Expr]] = {
        "ReLU": lambda: relay.nn.relu(data),
        "tanh": lambda: relay.tanh(data),
        "sigmoid": lambda: relay.sigmoid(data),
        "softplus": lambda: softplus(node, data),
        "softsign": lambda: relay.divide(data, relay.add(relay.abs(data), node.constant(1, data))),
        "leakyReLU": lambda: relay.nn.leaky_relu(data, chosen.alpha),
        "linear": lambda: linear(node, data, chosen.alpha, chosen.beta),
        "ELU": lambda: elu(node, data, chosen.alpha),
        "scaledTanh": lambda: relay.multiply(
            relay.tanh(relay.multiply(data, node.constant(chosen.beta, data))),
            node.constant(chosen.alpha, data),
        ),
        "sigmoidHard": lambda: relay.clip(linear(node, data, chosen.alpha, chosen.beta), 0.0, 1.0),
        "thresholdedReLU": lambda: relay.where(
            relay.greater(data, node.constant(chosen.alpha, data)), data, relay.zeros_like(data)
        ),
    }
    if kind in simple:
        return simple[kind]()
    alpha = _per_channel(node, chosen.alpha, data, "alpha")
    if kind == "PReLU":
        positive = relay.greater(data, node.constant(0, data))
        return relay.where(positive, data, relay.multiply(data, alpha))
    beta = _per_channel(node, chosen.beta, data, "beta")
    return relay.multiply(alpha, softplus(node, relay.multiply(data, beta)))


@LAYERS.register("activation")
def activation(node: LayerNode, params: Message, data: Expr) -> Expr:
    """An activation."""
    return activated(node, data, params)


@LAYERS.register("softmax")
def softmax(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Probabilities along the channels."""
    return relay.nn.softmax(data, node.channel_axis(data))


@LAYERS.register("softmaxND")
def softmax_nd(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Probabilities along an axis."""
    return relay.nn.softmax(data, params.axis % node.rank(data))


@LAYERS.register("gelu")
def gelu_layer(node: LayerNode, params: Message, data: Expr) -> Expr:
    """The Gaussian error linear unit."""
    return gelu(node, data, params.mode)


@LAYERS.register("clampedReLU")
def clamped_relu(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A leaky ReLU that stops at a number."""
    return relay.minimum(relay.nn.leaky_relu(data, params.alpha), node.constant(params.beta, data))
