"""Activations."""

from __future__ import annotations

import math

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter


@converter("relu")
def relu(node: PaddleNode, data: Expr) -> Expr:
    """Negative elements become zero."""
    return relay.nn.relu(data)


@converter("relu6")
def relu6(node: PaddleNode, data: Expr) -> Expr:
    """Elements between zero and a threshold, six unless another is given."""
    return relay.clip(data, 0.0, node.real("threshold", 6.0))


@converter("brelu", "hard_tanh", "hardtanh")
def brelu(node: PaddleNode, data: Expr) -> Expr:
    """Elements between two numbers."""
    return relay.clip(data, node.real("t_min", 0.0), node.real("t_max", 24.0))


@converter("sigmoid")
def sigmoid(node: PaddleNode, data: Expr) -> Expr:
    """The logistic function."""
    return relay.sigmoid(data)


@converter("logsigmoid")
def log_sigmoid(node: PaddleNode, data: Expr) -> Expr:
    """The logarithm of the logistic function."""
    return relay.negative(softplus_of(node, relay.negative(data)))


def softplus_of(node: PaddleNode, data: Expr) -> Expr:
    """``log(1 + exp(x))`` without overflow."""
    rest = relay.exp(relay.negative(relay.abs(data)))
    return relay.add(relay.nn.relu(data), relay.log(relay.add(rest, node.constant(1, data))))


@converter("softplus")
def softplus(node: PaddleNode, data: Expr) -> Expr:
    """A smooth ReLU; linear above a threshold."""
    beta, threshold = node.real("beta", 1.0), node.real("threshold", 20.0)
    grown = relay.multiply(data, node.constant(beta, data))
    smooth = relay.divide(softplus_of(node, grown), node.constant(beta, data))
    return relay.where(relay.greater(grown, node.constant(threshold, data)), data, smooth)


@converter("softsign")
def softsign(node: PaddleNode, data: Expr) -> Expr:
    """``x / (1 + |x|)``."""
    return relay.divide(data, relay.add(relay.abs(data), node.constant(1, data)))


@converter("swish", "silu")
def swish(node: PaddleNode, data: Expr) -> Expr:
    """``x * sigmoid(beta * x)``."""
    beta = node.real("beta", 1.0)
    inner = data if beta == 1.0 else relay.multiply(data, node.constant(beta, data))
    return relay.multiply(data, relay.sigmoid(inner))


@converter("mish")
def mish(node: PaddleNode, data: Expr) -> Expr:
    """``x * tanh(softplus(x))``."""
    return relay.multiply(data, relay.tanh(softplus_of(node, data)))


@converter("gelu")
def gelu(node: PaddleNode, data: Expr) -> Expr:
    """The Gaussian error linear unit, or its approximation by tanh."""
    half, one = node.constant(0.5, data), node.constant(1, data)
    if node.flag("approximate"):
        cube = relay.multiply(node.constant(0.044715, data), relay.multiply(data, relay.multiply(data, data)))
        inner = relay.multiply(node.constant(math.sqrt(2 / math.pi), data), relay.add(data, cube))
        bend = relay.tanh(inner)
    else:
        bend = relay.erf(relay.multiply(data, node.constant(math.sqrt(0.5), data)))
    return relay.multiply(relay.multiply(data, half), relay.add(bend, one))


@converter("leaky_relu")
def leaky_relu(node: PaddleNode, data: Expr) -> Expr:
    """Negative elements times a small number."""
    return relay.nn.leaky_relu(data, node.real("negative_slope", node.real("alpha", 0.02)))


@converter("prelu", reads="X Alpha")
def prelu(node: PaddleNode, data: Expr, alpha: Expr) -> Expr:
    """Negative elements times a learned number: one, one a channel, or one an element."""
    mode = node.text("mode", "all")
    shape, rank = node.static_shape(alpha, "alpha"), node.rank(data)
    if mode == "channel":
        axis = 1 if node.text("data_format", "NCHW")[1] == "C" else rank - 1
        sizes = [1] * rank
        sizes[axis] = math.prod(shape)
        alpha = relay.reshape(alpha, sizes)
    elif mode == "all":
        alpha = relay.reshape(alpha, (1,) * rank)
    elif mode == "element":
        alpha = relay.reshape(alpha, (1, *node.static_shape(data)[1:]))
    else:
        raise node.fail(f"the mode {mode!r} is not known")
    return relay.where(relay.greater(data, node.constant(0, data)), data, relay.multiply(data, alpha))


@converter("elu")
def elu(node: PaddleNode, data: Expr) -> Expr:
    """Exponential below zero."""
    return _elu(node, data, node.real("alpha", 1.0), 1.0)


@converter("celu")
def celu(node: PaddleNode, data: Expr) -> Expr:
    """Exponential below zero, with a slope of one at zero."""
    alpha = node.real("alpha", 1.0)
    return _elu(node, data, alpha, 1.0 / alpha)


def _elu(node: PaddleNode, data: Expr, alpha: float, inner: float) -> Expr:
    below = relay.minimum(data, node.constant(0, data))
    grown = relay.subtract(
        relay.exp(relay.multiply(below, node.constant(inner, data))), node.constant(1, data)
    )
    return relay.add(relay.nn.relu(data), relay.multiply(grown, node.constant(alpha, data)))


@converter("selu")
def selu(node: PaddleNode, data: Expr) -> Expr:
    """A scaled ELU that keeps mean and variance."""
    scale = node.real("scale", 1.0507009873554805)
    made = _elu(node, data, node.real("alpha", 1.6732632423543772), 1.0)
    return relay.multiply(made, node.constant(scale, data))


@converter("hard_sigmoid", "hardsigmoid")
def hard_sigmoid(node: PaddleNode, data: Expr) -> Expr:
    """A line between zero and one."""
    line = relay.multiply(data, node.constant(node.real("slope", 0.2), data))
    return relay.clip(relay.add(line, node.constant(node.real("offset", 0.5), data)), 0.0, 1.0)


@converter("hard_swish", "hardswish")
def hard_swish(node: PaddleNode, data: Expr) -> Expr:
    """``x * min(max(0, x + offset), threshold) / scale``."""
    line = relay.add(data, node.constant(node.real("offset", 3.0), data))
    gate = relay.clip(line, 0.0, node.real("threshold", 6.0))
    return relay.multiply(data, relay.divide(gate, node.constant(node.real("scale", 6.0), data)))


@converter("hard_shrink", "hardshrink")
def hard_shrink(node: PaddleNode, data: Expr) -> Expr:
    """Zero for elements nearer to zero than a threshold."""
    far = relay.greater(relay.abs(data), node.constant(node.real("threshold", 0.5), data))
    return relay.where(far, data, relay.zeros_like(data))


@converter("softshrink")
def soft_shrink(node: PaddleNode, data: Expr) -> Expr:
    """Elements nearer to zero by a threshold."""
    by = node.real("lambda", node.real("threshold", 0.5))
    return relay.subtract(data, relay.clip(data, -by, by))


@converter("tanh_shrink")
def tanh_shrink(node: PaddleNode, data: Expr) -> Expr:
    """``x - tanh(x)``."""
    return relay.subtract(data, relay.tanh(data))


@converter("stanh")
def scaled_tanh(node: PaddleNode, data: Expr) -> Expr:
    """``b * tanh(a * x)``."""
    inner = relay.multiply(data, node.constant(node.real("scale_a", 0.67), data))
    return relay.multiply(relay.tanh(inner), node.constant(node.real("scale_b", 1.7159), data))


@converter("thresholded_relu")
def thresholded_relu(node: PaddleNode, data: Expr) -> Expr:
    """Elements above a threshold, another number elsewhere."""
    above = relay.greater(data, node.constant(node.real("threshold", 1.0), data))
    return relay.where(above, data, relay.full_like(data, node.constant(node.real("value", 0.0), data)))


@converter("softmax")
def softmax(node: PaddleNode, data: Expr) -> Expr:
    """Probabilities along an axis."""
    return relay.nn.softmax(data, node.chosen_axis("axis", -1, node.rank(data)))


@converter("log_softmax")
def log_softmax(node: PaddleNode, data: Expr) -> Expr:
    """Logarithms of probabilities along an axis."""
    return relay.nn.log_softmax(data, node.chosen_axis("axis", -1, node.rank(data)))


@converter("maxout")
def maxout(node: PaddleNode, data: Expr) -> Expr:
    """The largest of groups of channels."""
    shape, groups = list(node.static_shape(data)), node.integer("groups")
    axis = node.chosen_axis("axis", 1, len(shape))
    split = [*shape[:axis], shape[axis] // groups, groups, *shape[axis + 1 :]]
    return relay.max(relay.reshape(data, split), axis=[axis + 1])


@converter("glu")
def glu(node: PaddleNode, data: Expr) -> Expr:
    """One half times the logistic function of the other."""
    left, right = relay.split(data, 2, node.chosen_axis("axis", -1, node.rank(data)))
    return relay.multiply(left, relay.sigmoid(right))
