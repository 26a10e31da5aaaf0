"""Arithmetic, comparisons, activations and functions of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.coreml.layers.activation import elu, gelu, linear, softplus
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS

Function = Callable[..., Expr]
_UNARY: Final[dict[str, Function]] = {
    "abs": relay.abs,
    "acos": relay.acos,
    "asin": relay.asin,
    "atan": relay.atan,
    "atanh": relay.atanh,
    "ceil": relay.ceil,
    "cos": relay.cos,
    "cosh": relay.cosh,
    "erf": relay.erf,
    "exp": relay.exp,
    "floor": relay.floor,
    "identity": lambda data: data,
    "logical_not": relay.logical_not,
    "relu": relay.nn.relu,
    "relu6": lambda data: relay.clip(data, 0.0, 6.0),
    "round": relay.nearbyint,
    "sigmoid": relay.sigmoid,
    "sign": relay.sign,
    "silu": lambda data: relay.multiply(data, relay.sigmoid(data)),
    "sin": relay.sin,
    "sinh": relay.sinh,
    "sqrt": relay.sqrt,
    "square": lambda data: relay.multiply(data, data),
    "tan": relay.tan,
    "tanh": relay.tanh,
}
_BINARY: Final[dict[str, Function]] = {
    "add": relay.add,
    "sub": relay.subtract,
    "mul": relay.multiply,
    "real_div": relay.divide,
    "maximum": relay.maximum,
    "minimum": relay.minimum,
    "mod": relay.floor_mod,
    "floor_div": relay.floor_divide,
    "pow": relay.power,
    "equal": relay.equal,
    "not_equal": relay.not_equal,
    "greater": relay.greater,
    "greater_equal": relay.greater_equal,
    "less": relay.less,
    "less_equal": relay.less_equal,
    "logical_and": relay.logical_and,
    "logical_or": relay.logical_or,
    "logical_xor": relay.logical_xor,
}
_SIZES: Final[dict[str, Callable[[int, int], int]]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "floor_div": int.__floordiv__,
}
"""The arithmetic of sizes."""


def _unary(node: OperationNode, *, function: Function) -> Expr:
    return function(node.tensor())


def _binary(node: OperationNode, *, function: Function) -> Expr:
    left, right = node.tensor("x"), node.tensor("y")
    followed = [node.followed(one) for one in (left, right)]
    if node.op_type in _SIZES and all(one is not None and len(one) == 1 for one in followed):
        sizes = [one[0] for one in followed if one is not None and isinstance(one[0], int)]
        if len(sizes) == 2:
            made = _SIZES[node.op_type](*sizes)
            return node.of_elements([made], node.dtype(left), scalar=node.rank(left) == node.rank(right) == 0)
    return function(left, right)


for _name, _function in _UNARY.items():
    OPERATIONS.register(_name)(partial(_unary, function=_function))
for _name, _function in _BINARY.items():
    OPERATIONS.register(_name)(partial(_binary, function=_function))


@OPERATIONS.register("exp2")
def exp2(node: OperationNode) -> Expr:
    """Powers of two."""
    return relay.power(node.constant(2, node.tensor()), node.tensor())


@OPERATIONS.register("inverse")
def inverse(node: OperationNode) -> Expr:
    """One divided by each element."""
    data = node.tensor()
    return relay.divide(
        node.constant(1, data), relay.add(data, node.constant(node.real("epsilon", 1e-4), data))
    )


@OPERATIONS.register("rsqrt")
def rsqrt(node: OperationNode) -> Expr:
    """One divided by the root of each element."""
    data = node.tensor()
    return relay.rsqrt(relay.add(data, node.constant(node.real("epsilon", 1e-12), data)))


@OPERATIONS.register("log")
def log(node: OperationNode) -> Expr:
    """Logarithms."""
    data = node.tensor()
    return relay.log(relay.add(data, node.constant(node.real("epsilon", 1e-45), data)))


@OPERATIONS.register("cast")
def cast(node: OperationNode) -> Expr:
    """Elements in another type."""
    data, kind = node.tensor(), node.text("dtype", "fp32")
    names = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}
    chosen = names.get(kind, kind)
    followed = node.followed(data)
    if followed is not None and chosen in ("int32", "int64"):
        return node.of_elements(followed, chosen, scalar=node.rank(data) == 0)
    return relay.cast(data, chosen)


@OPERATIONS.register("clip")
def clip(node: OperationNode) -> Expr:
    """Elements within bounds."""
    return relay.clip(node.tensor(), node.real("alpha", 0.0), node.real("beta", 0.0))


@OPERATIONS.register("threshold")
def threshold(node: OperationNode) -> Expr:
    """Elements from a number on."""
    data = node.tensor()
    return relay.maximum(data, node.constant(node.real("alpha", 0.0), data))


@OPERATIONS.register("select")
def select(node: OperationNode) -> Expr:
    """Elements of one tensor where a condition holds, of another elsewhere."""
    condition = node.tensor("cond")
    if node.dtype(condition) != "bool":
        condition = relay.cast(condition, "bool")
    return relay.where(condition, node.tensor("a"), node.tensor("b"))


# Activations


@OPERATIONS.register("gelu")
def gelu_operation(node: OperationNode) -> Expr:
    """The Gaussian error linear unit."""
    return gelu(node, node.tensor(), node.text("mode", "EXACT"))


@OPERATIONS.register("leaky_relu")
def leaky_relu(node: OperationNode) -> Expr:
    """Negative elements times a small number."""
    return relay.nn.leaky_relu(node.tensor(), node.real("alpha", 0.01))


@OPERATIONS.register("clamped_relu")
def clamped_relu(node: OperationNode) -> Expr:
    """A leaky ReLU that stops at a number."""
    data = node.tensor()
    leaky = relay.nn.leaky_relu(data, node.real("alpha", 0.0))
    return relay.minimum(leaky, node.constant(node.real("beta", 1.0), data))


@OPERATIONS.register("elu")
def elu_operation(node: OperationNode) -> Expr:
    """Exponential below zero."""
    return elu(node, node.tensor(), node.real("alpha", 1.0))


@OPERATIONS.register("linear_activation")
def linear_activation(node: OperationNode) -> Expr:
    """``alpha * x + beta``."""
    return linear(node, node.tensor(), node.real("alpha", 1.0), node.real("beta", 0.0))


@OPERATIONS.register("sigmoid_hard")
def sigmoid_hard(node: OperationNode) -> Expr:
    """A line between zero and one."""
    made = linear(node, node.tensor(), node.real("alpha", 0.2), node.real("beta", 0.5))
    return relay.clip(made, 0.0, 1.0)


@OPERATIONS.register("scaled_tanh")
def scaled_tanh(node: OperationNode) -> Expr:
    """``alpha * tanh(beta * x)``."""
    data = node.tensor()
    inner = relay.multiply(data, node.constant(node.real("beta", 1.0), data))
    return relay.multiply(relay.tanh(inner), node.constant(node.real("alpha", 1.0), data))


@OPERATIONS.register("softplus")
def softplus_operation(node: OperationNode) -> Expr:
    """A smooth ReLU."""
    return softplus(node, node.tensor())


def _per_channel(node: OperationNode, name: str, data: Expr) -> Expr:
    shape = [1] * node.rank(data)
    shape[1] = -1
    return relay.reshape(node.tensor(name), shape)


@OPERATIONS.register("softplus_parametric")
def softplus_parametric(node: OperationNode) -> Expr:
    """A smooth ReLU with numbers for each channel."""
    data = node.tensor()
    alpha, beta = _per_channel(node, "alpha", data), _per_channel(node, "beta", data)
    return relay.multiply(alpha, softplus(node, relay.multiply(data, beta)))


@OPERATIONS.register("prelu")
def prelu(node: OperationNode) -> Expr:
    """Negative elements times a number of their channel."""
    data = node.tensor()
    below = relay.multiply(data, _per_channel(node, "alpha", data))
    return relay.where(relay.greater(data, node.constant(0, data)), data, below)


@OPERATIONS.register("softsign")
def softsign(node: OperationNode) -> Expr:
    """``x / (1 + |x|)``."""
    data = node.tensor()
    return relay.divide(data, relay.add(relay.abs(data), node.constant(1, data)))


@OPERATIONS.register("thresholded_relu")
def thresholded_relu(node: OperationNode) -> Expr:
    """Elements from a number on, zero elsewhere."""
    data = node.tensor()
    above = relay.greater_equal(data, node.constant(node.real("alpha", 1.0), data))
    return relay.where(above, data, relay.zeros_like(data))


@OPERATIONS.register("softmax")
def softmax(node: OperationNode) -> Expr:
    """Probabilities along an axis."""
    return relay.nn.softmax(node.tensor(), node.chosen_axis("axis", -1, node.rank(node.tensor())))
