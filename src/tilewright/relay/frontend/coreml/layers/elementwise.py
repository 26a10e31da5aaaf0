"""Arithmetic of tensors, comparisons and functions of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml.layer import LayerNode
from tilewright.relay.frontend.coreml.registry import LAYERS

_UNARY: Final[dict[str, Callable[..., Expr]]] = {
    "ceil": relay.ceil,
    "floor": relay.floor,
    "sign": relay.sign,
    "round": relay.round,
    "sin": relay.sin,
    "cos": relay.cos,
    "tan": relay.tan,
    "asin": relay.asin,
    "acos": relay.acos,
    "atan": relay.atan,
    "sinh": relay.sinh,
    "cosh": relay.cosh,
    "tanh": relay.tanh,
    "asinh": relay.asinh,
    "acosh": relay.acosh,
    "atanh": relay.atanh,
    "erf": relay.erf,
    "copy": lambda data: data,
}
_BINARY: Final[dict[str, Callable[..., Expr]]] = {
    "modBroadcastable": relay.floor_mod,
    "minBroadcastable": relay.minimum,
    "maxBroadcastable": relay.maximum,
    "addBroadcastable": relay.add,
    "powBroadcastable": relay.power,
    "divideBroadcastable": relay.divide,
    "floorDivBroadcastable": relay.floor_divide,
    "multiplyBroadcastable": relay.multiply,
    "subtractBroadcastable": relay.subtract,
}
_COMPARISONS: Final[dict[str, Callable[..., Expr]]] = {
    "equal": relay.equal,
    "notEqual": relay.not_equal,
    "lessThan": relay.less,
    "lessEqual": relay.less_equal,
    "greaterThan": relay.greater,
    "greaterEqual": relay.greater_equal,
}
_LOGIC: Final[dict[str, Callable[..., Expr]]] = {
    "logicalOr": relay.logical_or,
    "logicalXor": relay.logical_xor,
    "logicalAnd": relay.logical_and,
}


def _unary(node: LayerNode, params: Message, data: Expr, *, function: Callable[..., Expr]) -> Expr:
    return function(data)


def _binary(node: LayerNode, params: Message, left: Expr, right: Expr, *, function: Any) -> Expr:
    made: Expr = function(left, right)
    return made


def _compared(node: LayerNode, params: Message, left: Expr, *right: Expr, function: Any) -> Expr:
    """Numbers of floating point that are one where a comparison with a tensor or a number holds."""
    other = right[0] if right else node.constant(params.alpha, left)
    return relay.cast(function(left, other), "float32")


def truth(node: LayerNode, data: Expr) -> Expr:
    """True where a number is not zero."""
    return data if node.dtype(data) == "bool" else relay.not_equal(data, node.constant(0, data))


def _logic(node: LayerNode, params: Message, left: Expr, right: Expr, *, function: Any) -> Expr:
    return relay.cast(function(truth(node, left), truth(node, right)), "float32")


for _name, _function in _UNARY.items():
    LAYERS.register(_name)(partial(_unary, function=_function))
for _name, _function in _BINARY.items():
    LAYERS.register(_name)(partial(_binary, function=_function))
for _name, _function in _COMPARISONS.items():
    LAYERS.register(_name)(partial(_compared, function=_function))
for _name, _function in _LOGIC.items():
    LAYERS.register(_name)(partial(_logic, function=_function))


@LAYERS.register("logicalNot")
def logical_not(node: LayerNode, params: Message, data: Expr) -> Expr:
    """One where a number is zero."""
    return relay.cast(relay.logical_not(truth(node, data)), "float32")


@LAYERS.register("exp2")
def exp2(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Powers of two."""
    return relay.power(node.constant(2, data), data)


@LAYERS.register("clip")
def clip(node: LayerNode, params: Message, data: Expr) -> Expr:
    """Elements within bounds."""
    return relay.clip(data, params.minVal, params.maxVal)


@LAYERS.register("add")
def add(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """The sum of tensors; of one tensor and a number."""
    return _folded(node, data, relay.add, params)


@LAYERS.register("multiply")
def multiply(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """The product of tensors; of one tensor and a number."""
    return _folded(node, data, relay.multiply, params)


@LAYERS.register("max")
def maximum(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """The largest of tensors."""
    return _folded(node, data, relay.maximum)


@LAYERS.register("min")
def minimum(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """The smallest of tensors."""
    return _folded(node, data, relay.minimum)


@LAYERS.register("average")
def average(node: LayerNode, params: Message, *data: Expr) -> Expr:
    """The mean of tensors."""
    return relay.divide(_folded(node, data, relay.add), node.constant(len(data), data[0]))


def _folded(
    node: LayerNode, data: tuple[Expr, ...], function: Callable[..., Expr], params: Message | None = None
) -> Expr:
    if len(data) == 1 and params is not None:
        return function(data[0], node.constant(params.alpha, data[0]))
    made = data[0]
    for one in data[1:]:
        made = function(made, one)
    return made


@LAYERS.register("unary")
def unary(node: LayerNode, params: Message, data: Expr) -> Expr:
    """A function of ``scale * x + shift``."""
    alpha, epsilon = node.constant(params.alpha, data), node.constant(params.epsilon, data)
    # A scale that is not given is one.
    scale = params.scale if params.has("scale") else 1.0
    if params.type == "THRESHOLD":
        return relay.maximum(data, alpha)
    if scale != 1.0:
        data = relay.multiply(data, node.constant(scale, data))
    if params.shift:
        data = relay.add(data, node.constant(params.shift, data))
    functions: dict[str, Callable[[], Expr]] = {
        "SQRT": lambda: relay.sqrt(data),
        "RSQRT": lambda: relay.rsqrt(relay.add(data, epsilon)),
        "INVERSE": lambda: relay.divide(node.constant(1, data), relay.add(data, epsilon)),
        "POWER": lambda: relay.power(data, alpha),
        "EXP": lambda: relay.exp(data),
        "LOG": lambda: relay.log(data),
        "ABS": lambda: relay.abs(data),
    }
    if params.type not in functions:
        raise node.fail(f"the function {params.type} is not known")
    return functions[params.type]()


@LAYERS.register("whereBroadcastable")
def where(node: LayerNode, params: Message, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Elements of one tensor where another is not zero, of a third elsewhere."""
    return relay.where(truth(node, condition), yes, no)


@LAYERS.register("dot")
def dot(node: LayerNode, params: Message, left: Expr, right: Expr) -> Expr:
    """Sums of products along the channels, perhaps of vectors of length one."""
    axis = node.channel_axis(left)
    if params.cosineSimilarity:
        left, right = (
            relay.divide(one, relay.sqrt(relay.sum(relay.multiply(one, one), axis=[axis], keepdims=True)))
            for one in (left, right)
        )
    return relay.sum(relay.multiply(left, right), axis=[axis], keepdims=True)
