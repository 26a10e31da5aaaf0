"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.elementwise import log1p
from tilewright.relay.frontend.torch.registry import converter


@converter("aten::relu")
def relu(node: TorchNode, input: Expr) -> Expr:
    """Zero in place of negative elements."""
    return relay.nn.relu(input)


@converter("aten::relu6")
def relu6(node: TorchNode, input: Expr) -> Expr:
    """Elements kept between 0 and 6."""
    return hardtanh(node, input, 0, 6)


@converter("aten::hardtanh")
def hardtanh(node: TorchNode, input: Expr, min_val: Any = -1, max_val: Any = 1) -> Expr:
    """Elements kept between two limits."""
    return relay.clip(input, float(min_val), float(max_val))


@converter("aten::leaky_relu")
def leaky_relu(node: TorchNode, input: Expr, negative_slope: float = 0.01) -> Expr:
    """Negative elements made smaller."""
    return relay.nn.leaky_relu(input, float(negative_slope))


@converter("aten::prelu", "aten::_prelu_kernel")
def prelu(node: TorchNode, input: Expr, weight: Expr) -> Expr:
    """Negative elements times a learnt factor, one for all or one for each channel."""
    if node.rank(weight) == 1 and node.rank(input) > 1 and node.shape(weight) != (1,):
        weight = relay.reshape(weight, [-1] + [1] * (node.rank(input) - 2))
    elif node.rank(weight) > node.rank(input):
        weight = relay.reshape(weight, ())
    positive = relay.greater(input, node.constant(0, input))
    return relay.where(positive, input, relay.multiply(input, weight))


@converter("aten::rrelu")
def rrelu(
    node: TorchNode, input: Expr, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Expr:
    """In inference, a leaky ReLU with the middle of the slopes."""
    if training:
        raise node.fail("in training mode slopes are drawn at random: call model.eval() before exporting")
    return relay.nn.leaky_relu(input, (float(lower) + float(upper)) / 2)


@converter("aten::elu")
def elu(node: TorchNode, input: Expr, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Expr:
    """Negative elements on an exponential curve."""
    zero, one = node.constant(0.0, input), node.constant(1.0, input)
    below = relay.minimum(input, zero)
    if float(input_scale) != 1:
        below = relay.multiply(below, node.constant(float(input_scale), input))
    curve = relay.multiply(node.constant(float(alpha), input), relay.subtract(relay.exp(below), one))
    found = relay.where(relay.greater(input, zero), input, curve)
    return found if float(scale) == 1 else relay.multiply(found, node.constant(float(scale), input))


@converter("aten::celu")
def celu(node: TorchNode, input: Expr, alpha: Any = 1.0) -> Expr:
    """An exponential curve for negative elements that has no corner."""
    return elu(node, input, alpha, 1, 1.0 / float(alpha))


@converter("aten::selu")
def selu(node: TorchNode, input: Expr) -> Expr:
    """An exponential curve, scaled so that layers keep mean and variance."""
    return elu(node, input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@converter("aten::gelu")
def gelu(node: TorchNode, input: Expr, approximate: str = "none") -> Expr:
    """Elements times the normal distribution's function of them, or its approximation by tanh."""
    half, one = node.constant(0.5, input), node.constant(1.0, input)
    if approximate == "tanh":
        cube = relay.multiply(relay.multiply(input, input), input)
        inner = relay.add(input, relay.multiply(node.constant(0.044715, input), cube))
        curve = relay.tanh(relay.multiply(node.constant(math.sqrt(2 / math.pi), input), inner))
    else:
        curve = relay.erf(relay.multiply(input, node.constant(math.sqrt(0.5), input)))
    return relay.multiply(relay.multiply(input, half), relay.add(one, curve))


@converter("aten::silu")
def silu(node: TorchNode, input: Expr) -> Expr:
    """Elements times their sigmoid."""
    return relay.multiply(input, relay.sigmoid(input))


@converter("aten::mish")
def mish(node: TorchNode, input: Expr) -> Expr:
    """Elements times the tanh of their softplus."""
    return relay.multiply(input, relay.tanh(softplus(node, input)))


@converter("aten::softplus")
def softplus(node: TorchNode, input: Expr, beta: Any = 1, threshold: Any = 20) -> Expr:
    """log(1 + exp(beta x)) / beta; large elements stay as they are."""
    factor = node.constant(float(beta), input)
    scaled = input if float(beta) == 1 else relay.multiply(input, factor)
    limit = node.constant(float(threshold), input)
    # Kept below the threshold, so that the branch that is not taken stays finite.
    curve = log1p(node, relay.exp(relay.minimum(scaled, limit)))
    curve = curve if float(beta) == 1 else relay.divide(curve, factor)
    return relay.where(relay.greater(scaled, limit), input, curve)


@converter("aten::log_sigmoid")
def log_sigmoid(node: TorchNode, input: Expr) -> Expr:
    """min(x, 0) - log(1 + exp(-|x|))."""
    below = relay.minimum(input, node.constant(0.0, input))
    return relay.subtract(below, log1p(node, relay.exp(relay.negative(relay.abs(input)))))


@converter("aten::log_sigmoid_forward")
def log_sigmoid_forward(node: TorchNode, input: Expr) -> list[Expr]:
    """The logarithm of the sigmoid, and a buffer that only gradients read."""
    return [log_sigmoid(node, input), relay.exp(relay.negative(relay.abs(input)))]


@converter("aten::hardsigmoid")
def hardsigmoid(node: TorchNode, input: Expr) -> Expr:
    """A straight line in place of the sigmoid."""
    moved = relay.add(input, node.constant(3.0, input))
    return relay.multiply(relay.clip(moved, 0.0, 6.0), node.constant(1 / 6, input))


@converter("aten::hardswish")
def hardswish(node: TorchNode, input: Expr) -> Expr:
    """Elements times their hard sigmoid."""
    return relay.multiply(input, hardsigmoid(node, input))


@converter("aten::hardshrink")
def hardshrink(node: TorchNode, input: Expr, lambd: Any = 0.5) -> Expr:
    """Zero in place of elements near zero."""
    near = relay.less_equal(relay.abs(input), node.constant(float(lambd), input))
    return relay.where(near, node.constant(0.0, input), input)


@converter("aten::softshrink")
def softshrink(node: TorchNode, input: Expr, lambd: Any = 0.5) -> Expr:
    """Elements moved towards zero."""
    limit, zero = node.constant(float(lambd), input), node.constant(0.0, input)
    above = relay.maximum(relay.subtract(input, limit), zero)
    return relay.add(above, relay.minimum(relay.add(input, limit), zero))


@converter("aten::tanhshrink")
def tanhshrink(node: TorchNode, input: Expr) -> Expr:
    """Elements less their tanh."""
    return relay.subtract(input, relay.tanh(input))


@converter("aten::softsign")
def softsign(node: TorchNode, input: Expr) -> Expr:
    """x / (1 + |x|)."""
    return relay.divide(input, relay.add(node.constant(1.0, input), relay.abs(input)))


@converter("aten::threshold")
def threshold(node: TorchNode, input: Expr, threshold: Any, value: Any) -> Expr:
    """A value in place of elements that are not above a threshold."""
    above = relay.greater(input, node.cast(threshold, node.dtype(input)))
    return relay.where(above, input, node.cast(value, node.dtype(input)))


@converter("aten::glu")
def glu(node: TorchNode, input: Expr, dim: int = -1) -> Expr:
    """One half of the channels times the sigmoid of the other."""
    one, other = relay.split(input, 2, node.axis_of(dim, node.rank(input)))
    return relay.multiply(one, relay.sigmoid(other))


@converter("aten::softmax", "aten::_softmax", "aten::special_softmax", "aten::_safe_softmax")
def softmax(
    node: TorchNode, input: Expr, dim: int, half_to_float: bool = False, dtype: str | None = None
) -> Expr:
    """Exponentials that add up to one along an axis."""
    data = node.cast(input, dtype) if dtype else node.floating(input)
    if half_to_float:
        data = node.cast(data, "float32")
    if not node.rank(data):
        return relay.ones_like(data)
    found = relay.nn.softmax(data, node.axis_of(dim, node.rank(data)))
    if "_safe_softmax" not in node.op_type:
        return found
    # A row in which everything is masked is all zero.
    masked = relay.equal(data, node.constant(-math.inf, data))
    gone = relay.all(masked, axis=[node.axis_of(dim, node.rank(data))], keepdims=True)
    return relay.where(gone, node.constant(0.0, found), found)


@converter("aten::log_softmax", "aten::_log_softmax", "aten::special_log_softmax")
def log_softmax(
    node: TorchNode, input: Expr, dim: int, half_to_float: bool = False, dtype: str | None = None
) -> Expr:
    """The logarithm of softmax."""
    data = node.cast(input, dtype) if dtype else node.floating(input)
    if half_to_float:
        data = node.cast(data, "float32")
    if not node.rank(data):
        return relay.zeros_like(data)
    axis, rank = node.axis_of(dim, node.rank(data)), node.rank(data)
    if axis == rank - 1:
        return relay.nn.log_softmax(data, axis)
    order = [*(one for one in range(rank) if one != axis), axis]
    back = [order.index(one) for one in range(rank)]
    return relay.transpose(relay.nn.log_softmax(relay.transpose(data, order), rank - 1), back)


@converter("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout")
def dropout(node: TorchNode, input: Expr, p: float, train: bool) -> Expr:
    """Nothing in inference."""
    if train and p:
        raise node.fail(
            f"in training mode {p} of the elements are dropped at random: call model.eval() before exporting"
        )
    return input


@converter("aten::native_dropout")
def native_dropout(node: TorchNode, input: Expr, p: float, train: bool | None) -> list[Expr]:
    """Nothing in inference; the mask says that all was kept."""
    return [dropout(node, input, p, bool(train)), node.cast(relay.ones_like(input), "bool")]
