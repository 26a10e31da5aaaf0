"""Activations, softmax, and losses, which at inference are the predictions that they are computed from."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


def _softrelu(node: SymbolNode, data: Expr) -> Expr:
    """log(1 + exp(x)) without overflow."""
    tail = relay.log(relay.add(node.constant(1, data), relay.exp(relay.negative(relay.abs(data)))))
    return relay.add(relay.nn.relu(data), tail)


def _softsign(node: SymbolNode, data: Expr) -> Expr:
    return relay.divide(data, relay.add(node.constant(1, data), relay.abs(data)))


def _gelu(node: SymbolNode, data: Expr) -> Expr:
    normal = relay.add(
        node.constant(1, data), relay.erf(relay.multiply(data, node.constant(1 / sqrt(2), data)))
    )
    return relay.multiply(relay.multiply(data, node.constant(0.5, data)), normal)


_ACTIVATIONS: Final[dict[str, Callable[[SymbolNode, Expr], Expr]]] = {
    "relu": lambda node, data: relay.nn.relu(data),
    "sigmoid": lambda node, data: relay.sigmoid(data),
    "tanh": lambda node, data: relay.tanh(data),
    "softrelu": _softrelu,
    "softsign": _softsign,
    "log_sigmoid": lambda node, data: relay.negative(_softrelu(node, relay.negative(data))),
    "mish": lambda node, data: relay.multiply(data, relay.tanh(_softrelu(node, data))),
}


@converter("Activation", "_npx_activation")
def activation(node: SymbolNode, data: Expr) -> Expr:
    """The function that act_type names."""
    kind = node.text("act_type", "")
    if kind not in _ACTIVATIONS:
        raise node.fail(f"act_type {kind!r} is not one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[kind](node, data)


@converter("relu", "_npx_relu")
def relu(node: SymbolNode, data: Expr) -> Expr:
    """No less than zero."""
    return relay.nn.relu(data)


@converter("softsign")
def softsign(node: SymbolNode, data: Expr) -> Expr:
    """x / (1 + abs(x))."""
    return _softsign(node, data)


def _elu(node: SymbolNode, data: Expr, slope: float) -> Expr:
    below = relay.subtract(relay.exp(relay.minimum(data, node.constant(0, data))), node.constant(1, data))
    return relay.add(relay.nn.relu(data), relay.multiply(node.constant(slope, data), below))


@converter("LeakyReLU", "_npx_leaky_relu")
def leaky_relu(node: SymbolNode, data: Expr, gamma: Expr | None = None) -> Expr:
    """One of the functions that are flat or curved below zero."""
    kind = node.text("act_type", "leaky")
    slope = node.number("slope", 0.25)
    if kind == "leaky":
        return relay.nn.leaky_relu(data, alpha=slope)
    if kind == "rrelu":
        # At inference, the mean of the slopes that training draws from.
        middle = (node.number("lower_bound", 0.125) + node.number("upper_bound", 0.334)) / 2
        return relay.nn.leaky_relu(data, alpha=middle)
    if kind == "elu":
        return _elu(node, data, slope)
    if kind == "selu":
        scaled = _elu(node, data, 1.6732632423543772)
        return relay.multiply(scaled, node.constant(1.0507009873554805, data))
    if kind == "gelu":
        return _gelu(node, data)
    if kind == "prelu":
        if gamma is None:
            raise node.fail("the slopes are missing")
        if node.static_shape(gamma, "the slopes") == (1,):
            below = relay.multiply(gamma, relay.minimum(data, node.constant(0, data)))
            return relay.add(relay.nn.relu(data), below)
        return relay.nn.prelu(data, gamma, axis=1)
    raise node.fail(f"act_type {kind!r} is not supported")


@converter("hard_sigmoid")
def hard_sigmoid(node: SymbolNode, data: Expr) -> Expr:
    """A line between zero and one."""
    line = relay.multiply(data, node.constant(node.number("alpha", 0.2), data))
    return relay.clip(relay.add(line, node.constant(node.number("beta", 0.5), data)), 0.0, 1.0)


def _tempered(node: SymbolNode, data: Expr) -> Expr:
    text = node.text("temperature", "None")
    return data if text == "None" else relay.divide(data, node.constant(node.number("temperature"), data))


@converter("softmax", "_npx_softmax")
def softmax(node: SymbolNode, data: Expr, length: Expr | None = None) -> Expr:
    """Probabilities along an axis; those after a length are zero."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    data = _tempered(node, data)
    if length is None or not node.flag("use_length"):
        return relay.nn.softmax(data, axis=axis)
    sizes = node.static_shape(data)
    place = relay.arange(node.constant(0, "int32"), node.constant(sizes[axis], "int32"), dtype="int32")
    place = relay.reshape(place, [size if one == axis else 1 for one, size in enumerate(sizes)])
    inside = relay.less(place, relay.expand_dims(relay.cast(length, "int32"), axis))
    masked = relay.where(inside, data, relay.full_like(data, node.constant(-1e30, data)))
    made = relay.nn.softmax(masked, axis=axis)
    return relay.where(inside, made, relay.zeros_like(data))


@converter("log_softmax", "_npx_log_softmax")
def log_softmax(node: SymbolNode, data: Expr) -> Expr:
    """Logarithms of probabilities along an axis."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    return relay.nn.log_softmax(_tempered(node, data), axis=axis)


@converter("softmin")
def softmin(node: SymbolNode, data: Expr) -> Expr:
    """Probabilities that are larger for smaller elements."""
    axis = node.chosen_axis("axis", -1, node.rank(data))
    return relay.nn.softmax(relay.negative(_tempered(node, data)), axis=axis)


@converter("SoftmaxActivation")
def softmax_activation(node: SymbolNode, data: Expr) -> Expr:
    """Probabilities of an image's elements, or of each pixel's channels."""
    if node.text("mode", "instance") == "channel":
        return relay.nn.softmax(data, axis=1)
    return relay.reshape_like(relay.nn.softmax(relay.nn.batch_flatten(data), axis=1), data)


# Losses


@converter("SoftmaxOutput", "Softmax", reads=1)
def softmax_output(node: SymbolNode, data: Expr) -> Expr:
    """Probabilities of classes."""
    if node.flag("multi_output"):
        return relay.nn.softmax(data, axis=1)
    if node.flag("preserve_shape"):
        return relay.nn.softmax(data, axis=-1)
    flat = relay.nn.softmax(relay.nn.batch_flatten(data), axis=1)
    return flat if node.rank(data) == 2 else relay.reshape_like(flat, data)


@converter("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput", reads=1)
def regression_output(node: SymbolNode, data: Expr) -> Expr:
    """The predictions."""
    return data


@converter("LogisticRegressionOutput", reads=1)
def logistic_output(node: SymbolNode, data: Expr) -> Expr:
    """The predictions as probabilities."""
    return relay.sigmoid(data)
