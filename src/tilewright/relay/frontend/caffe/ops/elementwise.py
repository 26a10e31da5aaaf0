"""Activations and functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.caffe.node import CaffeNode
from tilewright.relay.frontend.caffe.registry import LAYERS
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.protobuf import Message

_PLAIN: Final[dict[str, Callable[..., Expr]]] = {
    "Sigmoid": relay.sigmoid,
    "TanH": relay.tanh,
    "AbsVal": relay.abs,
}


def _plain(node: CaffeNode, data: Expr, *, function: Callable[..., Expr]) -> Expr:
    return function(data)


for _name, _function in _PLAIN.items():
    LAYERS.register(_name)(partial(_plain, function=_function))


@LAYERS.register("ReLU")
def relu(node: CaffeNode, data: Expr) -> Expr:
    """Negative elements times a slope, zero unless it is given."""
    slope = node.params.relu_param.negative_slope
    return relay.nn.leaky_relu(data, slope) if slope else relay.nn.relu(data)


@LAYERS.register("ReLU6")
def relu6(node: CaffeNode, data: Expr) -> Expr:
    """Elements between zero and six."""
    return relay.clip(data, 0.0, 6.0)


@LAYERS.register("PReLU")
def prelu(node: CaffeNode, data: Expr) -> Expr:
    """Negative elements times a learned number of their channel."""
    shape = (1,) if node.params.prelu_param.channel_shared else (1, -1, *[1] * (node.rank(data) - 2))
    slope = relay.reshape(node.weight(0), shape)
    return relay.where(relay.greater(data, node.constant(0, data)), data, relay.multiply(data, slope))


@LAYERS.register("ELU")
def elu(node: CaffeNode, data: Expr) -> Expr:
    """Exponential below zero."""
    grown = relay.subtract(relay.exp(relay.minimum(data, node.constant(0, data))), node.constant(1, data))
    scaled = relay.multiply(grown, node.constant(node.params.elu_param.alpha, data))
    return relay.add(relay.nn.relu(data), scaled)


@LAYERS.register("BNLL")
def bnll(node: CaffeNode, data: Expr) -> Expr:
    """``log(1 + exp(x))`` without overflow."""
    rest = relay.exp(relay.negative(relay.abs(data)))
    return relay.add(relay.nn.relu(data), relay.log(relay.add(rest, node.constant(1, data))))


def _shifted(node: CaffeNode, params: Message, data: Expr) -> Expr:
    if params.scale != 1.0:
        data = relay.multiply(data, node.constant(params.scale, data))
    return relay.add(data, node.constant(params.shift, data)) if params.shift else data


@LAYERS.register("Power")
def power(node: CaffeNode, data: Expr) -> Expr:
    """``(shift + scale * x) ^ power``."""
    params = node.params.power_param
    made = _shifted(node, params, data)
    if params.power == 1.0:
        return made
    if params.power == 2.0:
        return relay.multiply(made, made)
    return relay.power(made, node.constant(params.power, data))


@LAYERS.register("Exp")
def exp(node: CaffeNode, data: Expr) -> Expr:
    """``base ^ (shift + scale * x)``."""
    params = node.params.exp_param
    made = _shifted(node, params, data)
    if params.base > 0:
        made = relay.multiply(made, node.constant(math.log(params.base), data))
    return relay.exp(made)


@LAYERS.register("Log")
def log(node: CaffeNode, data: Expr) -> Expr:
    """The logarithm of ``shift + scale * x`` to a base."""
    params = node.params.log_param
    made = relay.log(_shifted(node, params, data))
    return relay.divide(made, node.constant(math.log(params.base), data)) if params.base > 0 else made


@LAYERS.register("Threshold")
def threshold(node: CaffeNode, data: Expr) -> Expr:
    """One above a number, zero elsewhere."""
    above = relay.greater(data, node.constant(node.params.threshold_param.threshold, data))
    return relay.cast(above, node.dtype(data))


@LAYERS.register("Dropout")
def dropout(node: CaffeNode, data: Expr) -> Expr:
    """Nothing is dropped after training."""
    params = node.params.dropout_param
    if params.scale_train:
        return data
    return relay.multiply(data, node.constant(1.0 - params.dropout_ratio, data))


@LAYERS.register("Eltwise")
def eltwise(node: CaffeNode, *data: Expr) -> Expr:
    """The sum, perhaps with factors, the product or the largest of tensors."""
    params = node.params.eltwise_param
    functions = {"SUM": relay.add, "PROD": relay.multiply, "MAX": relay.maximum}
    parts = list(data)
    if len(params.coeff) and params.operation == "SUM":
        if len(params.coeff) != len(parts):
            raise node.fail(f"there are {len(params.coeff)} factors and {len(parts)} inputs")
        parts = [
            one if factor == 1.0 else relay.multiply(one, node.constant(float(factor), one))
            for one, factor in zip(parts, params.coeff, strict=True)
        ]
    made = parts[0]
    for one in parts[1:]:
        made = functions[params.operation](made, one)
    return made


@LAYERS.register("Softmax", "SoftmaxWithLoss")
def softmax(node: CaffeNode, data: Expr) -> Expr:
    """Probabilities along an axis."""
    return relay.nn.softmax(data, node.chosen_axis(node.params.softmax_param.axis, node.rank(data)))
