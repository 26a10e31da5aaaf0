"""Elementwise operators on one tensor: mathematical functions and activations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.low_precision import decoded
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partials import known_items
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.support.dtype import DataType

Activation = Callable[[Node, RelayExpr], RelayExpr]

_UNARY: dict[str, Callable[[RelayExpr], RelayExpr]] = {
    "Acos": relay.acos,
    "Acosh": relay.acosh,
    "Asin": relay.asin,
    "Asinh": relay.asinh,
    "Atan": relay.atan,
    "Atanh": relay.atanh,
    "BitwiseNot": relay.bitwise_not,
    "Ceil": relay.ceil,
    "Cos": relay.cos,
    "Cosh": relay.cosh,
    "Erf": relay.erf,
    "Exp": relay.exp,
    "Floor": relay.floor,
    "Log": relay.log,
    "Not": relay.logical_not,
    "Relu": relay.nn.relu,
    "Sigmoid": relay.sigmoid,
    "Sign": relay.sign,
    "Sin": relay.sin,
    "Sinh": relay.sinh,
    "Sqrt": relay.sqrt,
    "Tan": relay.tan,
    "Tanh": relay.tanh,
}


def _register_unary(name: str, function: Callable[[RelayExpr], RelayExpr]) -> None:
    @converter(name)
    def convert(node: Node, data: RelayExpr) -> RelayExpr:
        return function(data)


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)


def is_floating(node: Node, data: RelayExpr) -> bool:
    """True if the elements are floating-point numbers."""
    return not DataType(node.dtype(data)).is_integral


@converter("Abs")
def absolute(node: Node, data: RelayExpr) -> RelayExpr:
    """The magnitude; unsigned numbers are their own."""
    return data if DataType(node.dtype(data)).is_uint else known_items(node, relay.abs(data), abs, data)


@converter("Neg")
def negative(node: Node, data: RelayExpr) -> RelayExpr:
    """The sign turned."""
    return known_items(node, relay.negative(data), lambda item: -item, data)


@converter("Round")
def round_even(node: Node, data: RelayExpr) -> RelayExpr:
    """To the nearest integer, halfway to the even one."""
    return relay.nearbyint(data)


@converter("Reciprocal")
def reciprocal(node: Node, data: RelayExpr) -> RelayExpr:
    """One over each element."""
    return relay.divide(node.constant(1, data), data)


def _decoded(node: Node, data: RelayExpr) -> RelayExpr:
    low_precision = node.low_precision(data)
    return data if low_precision is None else decoded(data, low_precision)


@converter("IsNaN")
def not_a_number(node: Node, data: RelayExpr) -> RelayExpr:
    """True where not a number."""
    return relay.isnan(_decoded(node, data))


@converter("IsInf")
def infinite(node: Node, data: RelayExpr) -> RelayExpr:
    """True where infinite, of either sign or of one."""
    data = _decoded(node, data)
    zero = node.constant(0, data)
    found: RelayExpr = relay.isinf(data)
    if not node.attr("detect_positive", 1):
        found = relay.logical_and(found, relay.less(data, zero))
    if not node.attr("detect_negative", 1):
        found = relay.logical_and(found, relay.greater(data, zero))
    return found


@converter("Clip", since=1)
def clip_attributes(node: Node, data: RelayExpr) -> RelayExpr:
    """Limits as attributes, up to opset 10."""
    return relay.clip(data, float(node.attr("min", -math.inf)), float(node.attr("max", math.inf)))


@converter("Clip", since=11)
def clip(
    node: Node, data: RelayExpr, low: RelayExpr | None = None, high: RelayExpr | None = None
) -> RelayExpr:
    """Limits as inputs; where the lower one is above the upper one, the upper one counts."""
    least, most = node.value(low), node.value(high)
    fixed = (low is None or least is not None) and (high is None or most is not None)
    if fixed and is_floating(node, data):
        bottom = -math.inf if least is None else float(least.item())
        top = math.inf if most is None else float(most.item())
        return relay.clip(data, min(bottom, top), top)
    limited = data
    if low is not None:
        limited = relay.maximum(limited, low)
    if high is not None:
        limited = relay.minimum(limited, high)
    limits = [one for one in (low, high) if one is not None]
    if len(limits) < 2:
        choose = max if low is not None else min
        return known_items(node, limited, choose, data, *limits) if limits else data
    return known_items(
        node, limited, lambda item, at_least, at_most: min(max(item, at_least), at_most), data, *limits
    )


# Activations


def in_single(convert: Activation) -> Activation:
    """A function of several steps, each of which would round: float16 and bfloat16 are computed in float32; integers,
    which some exporters leave in, in float64, and cut off."""

    @functools.wraps(convert)
    def made(node: Node, data: RelayExpr) -> RelayExpr:
        dtype = node.dtype(data)
        wide = "float32" if dtype in ("float16", "bfloat16") else "float64"
        if wide == "float64" and is_floating(node, data):
            return convert(node, data)
        return relay.cast(convert(node, relay.cast(data, wide)), dtype)

    return made


@converter("LeakyRelu")
def leaky_relu(node: Node, data: RelayExpr) -> RelayExpr:
    """A small slope below zero."""
    return relay.nn.leaky_relu(data, float(node.attr("alpha", 0.01)))


def _sloped(node: Node, data: RelayExpr, slope: RelayExpr) -> RelayExpr:
    return relay.where(relay.less(data, node.constant(0, data)), relay.multiply(slope, data), data)


@converter("PRelu")
def prelu_channels(node: Node, data: RelayExpr, slope: RelayExpr) -> RelayExpr:
    """A slope below zero that is an input: one, or one for each channel, up to opset 6."""
    after = node.rank(data) - 2
    if node.rank(slope) == 1 and node.shape(slope) != (1,) and after > 0:
        slope = relay.expand_dims(slope, 1, after)
    return _sloped(node, data, slope)


@converter("PRelu", since=7)
def prelu(node: Node, data: RelayExpr, slope: RelayExpr) -> RelayExpr:
    """A slope below zero that is an input, broadcast to the data."""
    return _sloped(node, data, slope)


def _below_zero(node: Node, data: RelayExpr, below: RelayExpr) -> RelayExpr:
    return relay.where(relay.less(data, node.constant(0, data)), below, data)


def _exponential(node: Node, data: RelayExpr, alpha: float) -> RelayExpr:
    """``alpha * (exp(x) - 1)``; of no more than zero, so that the branch that is not taken stays finite."""
    small = relay.minimum(data, node.constant(0, data))
    return relay.multiply(
        node.constant(alpha, data), relay.subtract(relay.exp(small), node.constant(1, data))
    )


@converter("Elu")
@in_single
def elu(node: Node, data: RelayExpr) -> RelayExpr:
    """``alpha * (exp(x) - 1)`` below zero."""
    return _below_zero(node, data, _exponential(node, data, float(node.attr("alpha", 1.0))))


@converter("Celu")
@in_single
def celu(node: Node, data: RelayExpr) -> RelayExpr:
    """``alpha * (exp(x / alpha) - 1)`` below zero."""
    alpha = float(node.attr("alpha", 1.0))
    return _below_zero(node, data, _exponential(node, relay.divide(data, node.constant(alpha, data)), alpha))


@converter("Selu")
@in_single
def selu(node: Node, data: RelayExpr) -> RelayExpr:
    """A scaled Elu."""
    alpha = float(node.attr("alpha", 1.67326319217681884765625))
    gamma = float(node.attr("gamma", 1.05070102214813232421875))
    bent = _below_zero(node, data, _exponential(node, data, alpha))
    return relay.multiply(node.constant(gamma, data), bent)


def gelu_exact(node: Node, data: RelayExpr) -> RelayExpr:
    """x times the normal distribution's probability of less than x."""
    inner = relay.erf(relay.multiply(data, node.constant(math.sqrt(0.5), data)))
    half = relay.multiply(data, node.constant(0.5, data))
    return relay.multiply(half, relay.add(inner, node.constant(1, data)))


def gelu_tanh(node: Node, data: RelayExpr) -> RelayExpr:
    """The same by way of tanh."""
    cube = relay.multiply(relay.multiply(data, data), data)
    inner = relay.add(data, relay.multiply(node.constant(0.044715, data), cube))
    bent = relay.tanh(relay.multiply(node.constant(math.sqrt(2 / math.pi), data), inner))
    half = relay.multiply(data, node.constant(0.5, data))
    return relay.multiply(half, relay.add(bent, node.constant(1, data)))


@converter("Gelu")
@in_single
def gelu(node: Node, data: RelayExpr) -> RelayExpr:
    """Exact, or by way of tanh."""
    return (gelu_tanh if node.attr("approximate", "none") == "tanh" else gelu_exact)(node, data)


@converter("Softplus")
@in_single
def softplus(node: Node, data: RelayExpr) -> RelayExpr:
    """``log(1 + exp(x))``, of large x too."""
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(data))), node.constant(1, data)))
    return relay.add(relay.maximum(data, node.constant(0, data)), tail)


@converter("Mish")
@in_single
def mish(node: Node, data: RelayExpr) -> RelayExpr:
    """``x * tanh(softplus(x))``."""
    return relay.multiply(data, relay.tanh(softplus(node, data)))


@converter("Softsign")
@in_single
def softsign(node: Node, data: RelayExpr) -> RelayExpr:
    """``x / (1 + |x|)``."""
    return relay.divide(data, relay.add(node.constant(1, data), relay.abs(data)))


def hard_sigmoid_of(node: Node, data: RelayExpr, alpha: float, beta: float) -> RelayExpr:
    """``alpha * x + beta`` between 0 and 1."""
    line = relay.add(relay.multiply(data, node.constant(alpha, data)), node.constant(beta, data))
    return relay.clip(line, 0.0, 1.0)


@converter("HardSigmoid")
@in_single
def hard_sigmoid(node: Node, data: RelayExpr) -> RelayExpr:
    """A line between 0 and 1."""
    return hard_sigmoid_of(node, data, float(node.attr("alpha", 0.2)), float(node.attr("beta", 0.5)))


@converter("HardSwish")
@in_single
def hard_swish(node: Node, data: RelayExpr) -> RelayExpr:
    """x times a hard sigmoid."""
    return relay.multiply(data, hard_sigmoid_of(node, data, 1 / 6, 0.5))


@converter("Swish")
@in_single
def swish(node: Node, data: RelayExpr) -> RelayExpr:
    """``x * sigmoid(alpha * x)``."""
    alpha = float(node.attr("alpha", 1.0))
    scaled = data if alpha == 1 else relay.multiply(data, node.constant(alpha, data))
    return relay.multiply(data, relay.sigmoid(scaled))


@converter("ThresholdedRelu")
def thresholded_relu(node: Node, data: RelayExpr) -> RelayExpr:
    """Elements above a threshold, zero elsewhere."""
    alpha = node.constant(float(node.attr("alpha", 1.0)), data)
    return relay.where(relay.greater(data, alpha), data, node.constant(0, data))


@converter("Shrink")
def shrink(node: Node, data: RelayExpr) -> RelayExpr:
    """Zero within ``lambd`` of zero, elsewhere nearer to zero by ``bias``."""
    dtype = node.dtype(data)
    # Thresholds need not be integers where the data are.
    wide = data if is_floating(node, data) else relay.cast(data, "float64")
    limit, bias = float(node.attr("lambd", 0.5)), float(node.attr("bias", 0.0))
    far = relay.where(
        relay.greater(wide, node.constant(limit, wide)),
        relay.subtract(wide, node.constant(bias, wide)),
        node.constant(0, wide),
    )
    made = relay.where(
        relay.less(wide, node.constant(-limit, wide)), relay.add(wide, node.constant(bias, wide)), far
    )
    return made if wide is data else relay.cast(made, dtype)


def number_limits(dtype: str) -> tuple[Any, Any]:
    """The least and the greatest element of a type; of floating-point types, the infinities."""
    kind = DataType(dtype)
    if kind.is_bool:
        return False, True
    if not kind.is_integral:
        return -math.inf, math.inf
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
