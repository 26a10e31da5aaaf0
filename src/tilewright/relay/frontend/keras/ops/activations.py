"""Activations, by name and as layers."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.keras.node import LayerNode
from tilewright.relay.frontend.keras.registry import layer_converter
from tilewright.relay.frontend.tensorflow.ops import elementwise


def _gelu(node: LayerNode, data: Expr, approximate: bool = False) -> Expr:
    node.attributes["approximate"] = approximate
    return elementwise.gelu(node, data)


def _hard_sigmoid(node: LayerNode, data: Expr) -> Expr:
    gate = relay.clip(relay.add(data, node.constant(3, data)), 0, 6)
    return relay.multiply(gate, node.constant(1 / 6, data))


_NAMED: dict[str, Any] = {
    "linear": lambda node, data: data,
    "relu": lambda node, data: relay.nn.relu(data),
    "relu6": lambda node, data: relay.clip(data, 0, 6),
    "sigmoid": lambda node, data: relay.sigmoid(data),
    "tanh": lambda node, data: relay.tanh(data),
    "exponential": lambda node, data: relay.exp(data),
    "softplus": elementwise.softplus,
    "softsign": elementwise.softsign,
    "selu": elementwise.selu,
    "elu": lambda node, data: elementwise.exponential_below_zero(node, data, 1.0),
    "gelu": _gelu,
    "silu": lambda node, data: relay.multiply(data, relay.sigmoid(data)),
    "swish": lambda node, data: relay.multiply(data, relay.sigmoid(data)),
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": elementwise.hard_swish,
    "hard_swish": elementwise.hard_swish,
    "leaky_relu": lambda node, data: relay.nn.leaky_relu(data, alpha=0.2),
    "softmax": lambda node, data: relay.nn.softmax(data, axis=-1),
    "log_softmax": lambda node, data: relay.nn.log_softmax(data, axis=-1),
    "mish": lambda node, data: relay.multiply(data, relay.tanh(elementwise.softplus(node, data))),
}


def activated(node: LayerNode, data: Expr, activation: Any) -> Expr:
    """Numbers under an activation: None, a function of ``keras.activations``, or a layer."""
    if activation is None:
        return data
    if not callable(activation) or hasattr(activation, "compute_output_spec"):
        return node.inside(activation, [data])  # type: ignore[no-any-return]
    if not is_known(activation):
        raise node.fail(f"the activation {activation!r} is not supported")
    return _NAMED[str(activation.__name__)](node, data)  # type: ignore[no-any-return]


def is_known(activation: Any) -> bool:
    """True if an activation is None or a function of Keras that can be converted."""
    return activation is None or (
        str(getattr(activation, "__name__", "")) in _NAMED
        and str(getattr(activation, "__module__", "")).startswith("keras.")
    )


@layer_converter("Activation")
def activation_layer(node: LayerNode, data: Expr) -> Expr:
    """An activation by its name."""
    return activated(node, data, node.layer.activation)


@layer_converter("ReLU")
def relu(node: LayerNode, data: Expr) -> Expr:
    """A ReLU, which may have a slope below a threshold, and a bound."""
    layer = node.layer
    slope, threshold = float(layer.negative_slope or 0), float(layer.threshold or 0)
    if threshold:
        bound = node.constant(threshold, data)
        below = relay.multiply(node.constant(slope, data), relay.subtract(data, bound))
        made = relay.where(relay.greater_equal(data, bound), data, below)
    else:
        made = relay.nn.leaky_relu(data, alpha=slope) if slope else relay.nn.relu(data)
    if layer.max_value is not None:
        made = relay.minimum(made, node.constant(float(layer.max_value), data))
    return made


@layer_converter("LeakyReLU")
def leaky_relu(node: LayerNode, data: Expr) -> Expr:
    """A ReLU with a slope below zero."""
    return relay.nn.leaky_relu(data, alpha=float(node.layer.negative_slope))


@layer_converter("PReLU")
def prelu(node: LayerNode, data: Expr) -> Expr:
    """A ReLU with learnt slopes below zero."""
    return elementwise.prelu(node, data, node.required("alpha"))


@layer_converter("ELU")
def elu(node: LayerNode, data: Expr) -> Expr:
    """The exponential linear unit."""
    return elementwise.exponential_below_zero(node, data, float(node.layer.alpha))


@layer_converter("Softmax")
def softmax(node: LayerNode, data: Expr) -> Expr:
    """Softmax along an axis."""
    axis = node.layer.axis
    if isinstance(axis, (list, tuple)):
        if len(axis) != 1:
            raise node.fail("softmax along several axes is not supported")
        (axis,) = axis
    return relay.nn.softmax(data, axis=int(axis))
