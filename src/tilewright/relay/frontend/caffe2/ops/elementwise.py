"""Arithmetic and functions of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.caffe2.node import Caffe2Node
from tilewright.relay.frontend.caffe2.registry import OPERATORS
from tilewright.relay.frontend.common.graph_node import Expr

Function = Callable[..., Expr]
_UNARY: Final[dict[str, Function]] = {
    "Relu": relay.nn.relu,
    "Sigmoid": relay.sigmoid,
    "Tanh": relay.tanh,
    "Exp": relay.exp,
    "Log": relay.log,
    "Sqrt": relay.sqrt,
    "Abs": relay.abs,
    "Negative": relay.negative,
    "Floor": relay.floor,
    "Ceil": relay.ceil,
    "Not": relay.logical_not,
    "Copy": lambda data: data,
    "Alias": lambda data: data,
    "StopGradient": lambda data: data,
    "Dropout": lambda data: data,
    "Sqr": lambda data: relay.multiply(data, data),
}
_BINARY: Final[dict[str, Function]] = {
    "Add": relay.add,
    "Sub": relay.subtract,
    "Mul": relay.multiply,
    "Div": relay.divide,
    "Pow": relay.power,
    "EQ": relay.equal,
    "NE": relay.not_equal,
    "GT": relay.greater,
    "GE": relay.greater_equal,
    "LT": relay.less,
    "LE": relay.less_equal,
    "And": relay.logical_and,
    "Or": relay.logical_or,
}
_FOLDED: Final[dict[str, Function]] = {"Sum": relay.add, "Max": relay.maximum, "Min": relay.minimum}


def _unary(node: Caffe2Node, data: Expr, *, function: Function) -> Expr:
    return function(data)


def _binary(node: Caffe2Node, left: Expr, *right: Expr, function: Function) -> Expr:
    """A function of pairs of elements; ``axis`` says with which axis of the first the second begins."""
    if not right:
        return function(left, node.constant(node.real("exponent", 1.0), left))
    other, rank = right[0], node.rank(left)
    missing = rank - node.rank(other)
    if missing > 0 and "axis" in node.attributes:
        axis = node.integer("axis", -1)
        behind = missing - axis % rank if axis >= 0 else 0
        other = relay.reshape(other, (*node.static_shape(other), *[1] * behind))
    return function(left, other)


def _folded(node: Caffe2Node, *data: Expr, function: Function) -> Expr:
    made = data[0]
    for one in data[1:]:
        made = function(made, one)
    return made


for _name, _function in _UNARY.items():
    OPERATORS.register(_name)(partial(_unary, function=_function))
for _name, _function in _BINARY.items():
    OPERATORS.register(_name)(partial(_binary, function=_function))
for _name, _function in _FOLDED.items():
    OPERATORS.register(_name)(partial(_folded, function=_function))


@OPERATORS.register("LeakyRelu")
def leaky_relu(node: Caffe2Node, data: Expr) -> Expr:
    """Negative elements times a small number."""
    return relay.nn.leaky_relu(data, node.real("alpha", 0.01))


@OPERATORS.register("PRelu")
def prelu(node: Caffe2Node, data: Expr, slope: Expr) -> Expr:
    """Negative elements times a learned number, one or one a channel."""
    node.require_order()
    if node.static_shape(slope)[0] > 1:
        slope = relay.reshape(slope, (1, -1, *[1] * (node.rank(data) - 2)))
    return relay.where(relay.greater(data, node.constant(0, data)), data, relay.multiply(data, slope))


@OPERATORS.register("Elu")
def elu(node: Caffe2Node, data: Expr) -> Expr:
    """Exponential below zero."""
    grown = relay.subtract(relay.exp(relay.minimum(data, node.constant(0, data))), node.constant(1, data))
    return relay.add(relay.nn.relu(data), relay.multiply(grown, node.constant(node.real("alpha", 1.0), data)))


@OPERATORS.register("Clip")
def clip(node: Caffe2Node, data: Expr) -> Expr:
    """Elements within bounds."""
    return relay.clip(data, node.real("min", -3.4028235e38), node.real("max", 3.4028235e38))


@OPERATORS.register("Scale")
def scale(node: Caffe2Node, data: Expr) -> Expr:
    """Elements times a number."""
    return relay.multiply(data, node.constant(node.real("scale", 1.0), data))


@OPERATORS.register("Softmax")
def softmax(node: Caffe2Node, data: Expr) -> Expr:
    """Probabilities over everything from an axis on."""
    shape = node.static_shape(data)
    axis = node.chosen_axis("axis", 1, data)
    if axis == len(shape) - 1:
        return relay.nn.softmax(data, axis)
    rows = relay.reshape(data, (*shape[:axis], -1))
    return relay.reshape(relay.nn.softmax(rows, axis), shape)


@OPERATORS.register("Cast")
def cast(node: Caffe2Node, data: Expr) -> Expr:
    """Elements in another type."""
    kinds = {1: "float32", 2: "int32", 5: "bool", 6: "uint8", 7: "int8", 10: "int64", 13: "float64"}
    wanted = node.integer("to", 1)
    if wanted not in kinds:
        raise node.fail(f"the element type {wanted} is not supported")
    return relay.cast(data, kinds[wanted])


@OPERATORS.register("NormalizePlanarYUV")
def normalize_planar_yuv(node: Caffe2Node, data: Expr, mean: Expr, deviation: Expr) -> Expr:
    """Channels without their mean, divided by their standard deviation."""
    shape = (1, -1, 1, 1)
    return relay.divide(relay.subtract(data, relay.reshape(mean, shape)), relay.reshape(deviation, shape))
