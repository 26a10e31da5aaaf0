"""Activations under Darknet's names, softmax, and layers that do nothing at inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.darknet.node import LayerNode
from tilewright.relay.frontend.darknet.registry import converter

Activation = Callable[[LayerNode, Expr], Expr]


def _below(node: LayerNode, data: Expr) -> Expr:
    """exp(x) - 1 below zero, zero above."""
    return relay.subtract(relay.exp(relay.minimum(data, node.constant(0, data))), node.constant(1, data))


def _scaled(node: LayerNode, data: Expr, factor: float) -> Expr:
    return relay.multiply(data, node.constant(factor, data))


def _selu(node: LayerNode, data: Expr) -> Expr:
    return _scaled(node, relay.add(relay.nn.relu(data), _scaled(node, _below(node, data), 1.6732)), 1.0507)


def _mish(node: LayerNode, data: Expr) -> Expr:
    tail = relay.log(relay.add(node.constant(1, data), relay.exp(relay.negative(relay.abs(data)))))
    return relay.multiply(data, relay.tanh(relay.add(relay.nn.relu(data), tail)))


def _lines(node: LayerNode, data: Expr, low: float, high: float, outside: float) -> Expr:
    """A line between two numbers, and a flatter one on both sides."""
    inside = relay.clip(data, low, high)
    return relay.add(inside, _scaled(node, relay.subtract(data, inside), outside))


def _plse(node: LayerNode, data: Expr) -> Expr:
    inside = relay.clip(data, -4.0, 4.0)
    middle = relay.add(_scaled(node, inside, 0.125), node.constant(0.5, data))
    return relay.add(middle, _scaled(node, relay.subtract(data, inside), 0.01))


def _stair(node: LayerNode, data: Expr) -> Expr:
    whole = relay.floor(data)
    half = relay.floor(_scaled(node, data, 0.5))
    odd = relay.subtract(whole, _scaled(node, relay.floor(_scaled(node, whole, 0.5)), 2.0))
    return relay.add(half, relay.multiply(odd, relay.subtract(data, whole)))


ACTIVATIONS: Final[dict[str, Activation]] = {
    "linear": lambda node, data: data,
    "logistic": lambda node, data: relay.sigmoid(data),
    "loggy": lambda node, data: relay.subtract(
        _scaled(node, relay.sigmoid(data), 2.0), node.constant(1, data)
    ),
    "relu": lambda node, data: relay.nn.relu(data),
    "relu6": lambda node, data: relay.clip(data, 0.0, 6.0),
    "elu": lambda node, data: relay.add(relay.nn.relu(data), _below(node, data)),
    "selu": _selu,
    "relie": lambda node, data: relay.nn.leaky_relu(data, alpha=0.01),
    "ramp": lambda node, data: relay.add(relay.nn.relu(data), _scaled(node, data, 0.1)),
    "leaky": lambda node, data: relay.nn.leaky_relu(data, alpha=0.1),
    "tanh": lambda node, data: relay.tanh(data),
    "plse": _plse,
    "stair": _stair,
    "hardtan": lambda node, data: relay.clip(data, -1.0, 1.0),
    "lhtan": lambda node, data: _lines(node, data, 0.0, 1.0, 0.001),
    "swish": lambda node, data: relay.multiply(data, relay.sigmoid(data)),
    "mish": _mish,
}


def activated(node: LayerNode, data: Expr, default: str) -> Expr:
    """The layer's activation; layers have different ones by default."""
    return ACTIVATIONS[node.text("activation", default)](node, data)


@converter("activation")
def activation(node: LayerNode, data: Expr) -> Expr:
    """A layer that is only an activation."""
    return activated(node, data, "linear")


@converter("logistic")
def logistic(node: LayerNode, data: Expr) -> Expr:
    """Probabilities of classes that do not exclude each other."""
    return relay.sigmoid(data)


@converter("softmax")
def softmax(node: LayerNode, data: Expr) -> Expr:
    """Probabilities of classes, or of groups of them; with ``spatial``, of each pixel's."""
    data = _scaled(node, data, 1.0 / node.real("temperature", 1.0))
    if node.integer("spatial", 0):
        return relay.nn.softmax(node.image(data), axis=1)
    flat = relay.nn.batch_flatten(data)
    groups = node.integer("groups", 1)
    if groups == 1:
        return relay.nn.softmax(flat, axis=1)
    batch, width = node.static_shape(flat)
    parted = relay.nn.softmax(relay.reshape(flat, (batch, groups, width // groups)), axis=2)
    return relay.reshape(parted, (batch, width))


@converter("dropout", "cost")
def same(node: LayerNode, data: Expr) -> Expr:
    """The data as they are: the layer is for training."""
    return data
