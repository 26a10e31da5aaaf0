"""Operators on single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import Size, added, multiplied
from tilewright.relay.frontend.tensorflow.registry import converter

_UNARY: Final[dict[str, Callable[..., Any]]] = {
    "Abs": relay.abs,
    "Acos": relay.acos,
    "Acosh": relay.acosh,
    "Asin": relay.asin,
    "Asinh": relay.asinh,
    "Atan": relay.atan,
    "Atanh": relay.atanh,
    "Ceil": relay.ceil,
    "Cos": relay.cos,
    "Cosh": relay.cosh,
    "Erf": relay.erf,
    "Exp": relay.exp,
    "Floor": relay.floor,
    "IsFinite": relay.isfinite,
    "IsInf": relay.isinf,
    "IsNan": relay.isnan,
    "Log": relay.log,
    "LogicalNot": relay.logical_not,
    "Relu": relay.nn.relu,
    "Rsqrt": relay.rsqrt,
    "Sigmoid": relay.sigmoid,
    "Sign": relay.sign,
    "Sin": relay.sin,
    "Sinh": relay.sinh,
    "Sqrt": relay.sqrt,
    "Tan": relay.tan,
    "Tanh": relay.tanh,
    "Invert": relay.bitwise_not,
}
_BINARY: Final[dict[str, Callable[..., Any]]] = {
    "Maximum": relay.maximum,
    "Minimum": relay.minimum,
    "Pow": relay.power,
    "LogicalAnd": relay.logical_and,
    "LogicalOr": relay.logical_or,
    "Greater": relay.greater,
    "GreaterEqual": relay.greater_equal,
    "Less": relay.less,
    "LessEqual": relay.less_equal,
    "Equal": relay.equal,
    "NotEqual": relay.not_equal,
    "FloorDiv": relay.floor_divide,
    "FloorMod": relay.floor_mod,
    "TruncateDiv": relay.divide,
    "TruncateMod": relay.mod,
    "Mod": relay.mod,
    "LeftShift": relay.left_shift,
    "RightShift": relay.right_shift,
    "BitwiseAnd": relay.bitwise_and,
    "BitwiseOr": relay.bitwise_or,
    "BitwiseXor": relay.bitwise_xor,
    "Div": relay.divide,
    "RealDiv": relay.divide,
}
_LITE_NAMES: Final = {
    "Sigmoid": "LOGISTIC",
    "FloorDiv": "FLOOR_DIV",
    "FloorMod": "FLOOR_MOD",
    "GreaterEqual": "GREATER_EQUAL",
    "LessEqual": "LESS_EQUAL",
    "NotEqual": "NOT_EQUAL",
    "LogicalAnd": "LOGICAL_AND",
    "LogicalOr": "LOGICAL_OR",
    "LogicalNot": "LOGICAL_NOT",
    "BitwiseXor": "BITWISE_XOR",
    "RightShift": "RIGHT_SHIFT",
    "RealDiv": "DIV",
}
_ONLY_IN_TENSORFLOW: Final = {"Div", "Mod", "LeftShift"}


def _names(name: str) -> tuple[str, ...]:
    lite = _LITE_NAMES.get(name, name.upper())
    return (name,) if name in _ONLY_IN_TENSORFLOW else (name, lite)


def _register_unary(name: str, function: Callable[..., Any]) -> None:
    @converter(*_names(name))
    def convert(node: GraphNode, data: Expr) -> Expr:
        made: Expr = function(data)
        return made


def _register_binary(name: str, function: Callable[..., Any]) -> None:
    @converter(*_names(name))
    def convert(node: GraphNode, left: Expr, right: Expr) -> Expr:
        return followed(node, left, right) or function(left, right)


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)
for _name, _function in _BINARY.items():
    _register_binary(_name, _function)


# The arithmetic of shapes


def followed(node: GraphNode, left: Expr, right: Expr) -> Expr | None:
    """The result of a sum or product of shapes whose elements are followed, where the result's are as well."""
    if node.op_type not in ("Mul", "MUL", "Add", "AddV2", "ADD", "Maximum", "MAXIMUM", "Minimum", "MINIMUM"):
        return None
    if left not in node.scope.vectors and right not in node.scope.vectors:
        return None
    one, other = node.followed(left), node.followed(right)
    if one is None or other is None or max(node.rank(left), node.rank(right)) > 1:
        return None
    count = max(len(one), len(other))
    pairs = zip(one * (count // len(one)), other * (count // len(other)), strict=True)
    found: list[Size] = []
    for first, second in pairs:
        if node.op_type in ("Mul", "MUL"):
            found.append(multiplied([first, second]))
        elif node.op_type in ("Add", "AddV2", "ADD"):
            found.append(added(first, second))
        elif isinstance(first, int) and isinstance(second, int):
            found.append(max(first, second) if node.op_type.upper() == "MAXIMUM" else min(first, second))
        else:
            return None
    return node.of_elements(found, node.dtype(left), max(node.rank(left), node.rank(right)) == 0)


@converter("Add", "AddV2")
def add(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The sum."""
    return followed(node, left, right) or relay.add(left, right)


@converter("Sub")
def subtract(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The difference."""
    return relay.subtract(left, right)


@converter("Mul")
def multiply(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The product by elements."""
    return followed(node, left, right) or relay.multiply(left, right)


# Compositions


@converter("AddN", "ADD_N", "AccumulateNV2")
def add_n(node: GraphNode, *terms: Expr) -> Expr:
    """The sum of tensors of one shape."""
    total = terms[0]
    for term in terms[1:]:
        total = relay.add(total, term)
    return total


@converter("Neg", "NEG")
def negative(node: GraphNode, data: Expr) -> Expr:
    """The opposite."""
    return relay.negative(data)


@converter("Round", "ROUND", "Rint")
def round_(node: GraphNode, data: Expr) -> Expr:
    """The nearest integer, halfway to the even one."""
    dtype = node.dtype(data)
    if not dtype.startswith("float"):
        return data
    return relay.nearbyint(data)


@converter("Square", "SQUARE")
def square(node: GraphNode, data: Expr) -> Expr:
    """The product with itself."""
    return relay.multiply(data, data)


@converter("SquaredDifference", "SQUARED_DIFFERENCE")
def squared_difference(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The square of the difference."""
    difference = relay.subtract(left, right)
    return relay.multiply(difference, difference)


@converter("Reciprocal", "Inv")
def reciprocal(node: GraphNode, data: Expr) -> Expr:
    """One divided by each element."""
    return relay.divide(node.constant(1, data), data)


@converter("Expm1")
def expm1(node: GraphNode, data: Expr) -> Expr:
    """exp(x) - 1, accurate near zero: tanh(x / 2) * (exp(x) + 1) is the same number."""
    half = relay.tanh(relay.multiply(data, node.constant(0.5, data)))
    made = relay.multiply(half, relay.add(relay.exp(data), node.constant(1, data)))
    small = relay.less(relay.abs(data), node.constant(0.5, data))
    return relay.where(small, made, relay.subtract(relay.exp(data), node.constant(1, data)))


@converter("Log1p")
def log1p(node: GraphNode, data: Expr) -> Expr:
    """log(1 + x)."""
    return relay.log(relay.add(data, node.constant(1, data)))


@converter("Erfc")
def erfc(node: GraphNode, data: Expr) -> Expr:
    """1 - erf(x)."""
    return relay.subtract(node.constant(1, data), relay.erf(data))


@converter("Atan2", "ATAN2")
def atan2(node: GraphNode, rise: Expr, run: Expr) -> Expr:
    """The angle of a point, in all four quadrants."""
    zero, pi = node.constant(0, rise), node.constant(math.pi, rise)
    angle = relay.atan(relay.divide(rise, run))
    turned = relay.where(relay.greater_equal(rise, zero), relay.add(angle, pi), relay.subtract(angle, pi))
    made = relay.where(relay.less(run, zero), turned, angle)
    upright = relay.multiply(relay.sign(rise), node.constant(math.pi / 2, rise))
    return relay.where(relay.equal(run, zero), upright, made)


@converter("DivNoNan")
def divide_no_nan(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The quotient, zero where the divisor is."""
    zero = node.constant(0, right)
    none = relay.equal(right, zero)
    quotient = relay.divide(left, relay.where(none, relay.ones_like(right), right))
    return relay.where(none, relay.zeros_like(quotient), quotient)


@converter("Xdivy")
def xdivy(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The quotient, zero where the dividend is."""
    quotient = relay.divide(left, right)
    return relay.where(relay.equal(left, node.constant(0, left)), relay.zeros_like(quotient), quotient)


@converter("Xlogy")
def xlogy(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """x * log(y), zero where x is."""
    product = relay.multiply(left, relay.log(right))
    return relay.where(relay.equal(left, node.constant(0, left)), relay.zeros_like(product), product)


@converter("MulNoNan")
def multiply_no_nan(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The product, zero where the second factor is, whatever the first."""
    product = relay.multiply(left, right)
    return relay.where(relay.equal(right, node.constant(0, right)), relay.zeros_like(product), product)


@converter("ApproximateEqual")
def approximate_equal(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """Whether two numbers differ by less than a tolerance."""
    distance = relay.abs(relay.subtract(left, right))
    return relay.less(distance, node.constant(float(node.attr("tolerance", 1e-5)), distance))


@converter("ClipByValue")
def clip_by_value(node: GraphNode, data: Expr, low: Expr, high: Expr) -> Expr:
    """Elements between two bounds."""
    least, most = node.value(low), node.value(high)
    if least is not None and most is not None and least.size == 1 and most.size == 1:
        return relay.clip(data, least.reshape(-1)[0].item(), most.reshape(-1)[0].item())
    return relay.minimum(relay.maximum(data, low), high)


# Activations


@converter("Relu6", "RELU6")
def relu6(node: GraphNode, data: Expr) -> Expr:
    """Elements between 0 and 6."""
    return relay.clip(data, 0, 6)


@converter("RELU_N1_TO_1")
def relu_n1_to_1(node: GraphNode, data: Expr) -> Expr:
    """Elements between -1 and 1."""
    return relay.clip(data, -1, 1)


@converter("RELU_0_TO_1")
def relu_0_to_1(node: GraphNode, data: Expr) -> Expr:
    """Elements between 0 and 1."""
    return relay.clip(data, 0, 1)


@converter("LeakyRelu", "LEAKY_RELU")
def leaky_relu(node: GraphNode, data: Expr) -> Expr:
    """Negative elements by a factor."""
    return relay.nn.leaky_relu(data, alpha=float(node.attr("alpha", 0.2)))


@converter("PRELU")
def prelu(node: GraphNode, data: Expr, alpha: Expr) -> Expr:
    """Negative elements by factors that broadcast."""
    zero = node.constant(0, data)
    return relay.add(relay.nn.relu(data), relay.multiply(alpha, relay.minimum(data, zero)))


def exponential_below_zero(node: GraphNode, data: Expr, alpha: float, scale: float = 1.0) -> Expr:
    """scale * x above zero, scale * alpha * (exp(x) - 1) below."""
    zero, one = node.constant(0, data), node.constant(1, data)
    below = relay.subtract(relay.exp(relay.minimum(data, zero)), one)
    made = relay.add(relay.nn.relu(data), relay.multiply(node.constant(alpha, data), below))
    return made if scale == 1.0 else relay.multiply(node.constant(scale, data), made)


@converter("Elu", "ELU")
def elu(node: GraphNode, data: Expr) -> Expr:
    """The exponential linear unit."""
    return exponential_below_zero(node, data, float(node.attr("alpha", 1.0)))


@converter("Selu")
def selu(node: GraphNode, data: Expr) -> Expr:
    """The scaled exponential linear unit."""
    return exponential_below_zero(node, data, 1.6732632423543772, 1.0507009873554805)


@converter("Softplus")
def softplus(node: GraphNode, data: Expr) -> Expr:
    """log(1 + exp(x)), without overflow."""
    decay = relay.exp(relay.negative(relay.abs(data)))
    return relay.add(relay.nn.relu(data), relay.log(relay.add(decay, node.constant(1, data))))


@converter("Softsign")
def softsign(node: GraphNode, data: Expr) -> Expr:
    """x / (1 + |x|)."""
    return relay.divide(data, relay.add(relay.abs(data), node.constant(1, data)))


@converter("HARD_SWISH")
def hard_swish(node: GraphNode, data: Expr) -> Expr:
    """x * relu6(x + 3) / 6."""
    gate = relay.clip(relay.add(data, node.constant(3, data)), 0, 6)
    return relay.multiply(data, relay.multiply(gate, node.constant(1 / 6, data)))


@converter("GELU")
def gelu(node: GraphNode, data: Expr) -> Expr:
    """x times the normal distribution's cumulative probability of x."""
    half, one = node.constant(0.5, data), node.constant(1, data)
    if node.attr("approximate", False):
        cube = relay.multiply(relay.multiply(data, data), data)
        inner = relay.add(data, relay.multiply(node.constant(0.044715, data), cube))
        slope = relay.tanh(relay.multiply(node.constant(math.sqrt(2 / math.pi), data), inner))
    else:
        slope = relay.erf(relay.multiply(data, node.constant(math.sqrt(0.5), data)))
    return relay.multiply(relay.multiply(half, data), relay.add(one, slope))


@converter("Softmax")
def softmax(node: GraphNode, data: Expr) -> Expr:
    """Exponentials along the last axis, divided by their sum."""
    return relay.nn.softmax(data, axis=-1)


@converter("LogSoftmax", "LOG_SOFTMAX")
def log_softmax(node: GraphNode, data: Expr) -> Expr:
    """The logarithm of softmax along the last axis."""
    return relay.nn.log_softmax(data, axis=-1)


# Types and copies


@converter("Cast", "CAST")
def cast(node: GraphNode, data: Expr) -> Expr:
    """Elements of another type. Floating-point numbers lose their fraction on the way to integers."""
    dtype = str(node.attr("DstT"))
    elements = node.followed(data)
    if elements is not None and dtype in ("int32", "int64"):
        return node.of_elements(elements, dtype, node.rank(data) == 0)
    return data if node.dtype(data) == dtype else relay.cast(data, dtype)


@converter("Bitcast")
def bitcast(node: GraphNode, data: Expr) -> Expr:
    """The same bits as another type of the same width."""
    return relay.reinterpret(data, str(node.attr("type")))


@converter(
    "Identity", "Snapshot", "StopGradient", "PreventGradient", "CheckNumerics", "PlaceholderWithDefault",
    "EnsureShape", "ReadVariableOp", "DeepCopy", "GuaranteeConst", "Print",
)  # fmt: skip
def identity(node: GraphNode, data: Expr, *more: Expr) -> Expr:
    """The same tensor."""
    return data


@converter("IdentityN")
def identity_n(node: GraphNode, *data: Expr) -> list[Expr]:
    """The same tensors."""
    return list(data)
