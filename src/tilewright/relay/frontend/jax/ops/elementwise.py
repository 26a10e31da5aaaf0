"""Arithmetic on numbers, comparisons, selection and conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common import special
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.registry import converter
from tilewright.relay.frontend.tensorflow.ops.elementwise import atan2, erfc, expm1

_UNARY: Final[dict[str, Callable[[Expr], Expr]]] = {
    "abs": relay.abs,
    "ceil": relay.ceil,
    "cosine": relay.cos,
    "exponential": relay.exp,
    "floor": relay.floor,
    "is_finite": relay.isfinite,
    "log": relay.log,
    "logistic": relay.sigmoid,
    "negate": relay.negative,
    "round_nearest_afz": relay.round,
    "round_nearest_even": relay.nearbyint,
    "rsqrt": relay.rsqrt,
    "sign": relay.sign,
    "sine": relay.sin,
    "sqrt": relay.sqrt,
    "tan": relay.tan,
    "tanh": relay.tanh,
    "chlo.acos": relay.acos,
    "chlo.acosh": relay.acosh,
    "chlo.asin": relay.asin,
    "chlo.asinh": relay.asinh,
    "chlo.atan": relay.atan,
    "chlo.atanh": relay.atanh,
    "chlo.cosh": relay.cosh,
    "chlo.erf": relay.erf,
    "chlo.is_inf": relay.isinf,
    "chlo.sinh": relay.sinh,
    "chlo.tan": relay.tan,
}
_BINARY: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "divide": relay.divide,
    "power": relay.power,
    "remainder": relay.mod,
    "subtract": relay.subtract,
}
_BINARY_OR_LOGICAL: Final[dict[str, tuple[Callable[[Expr, Expr], Expr], Callable[[Expr, Expr], Expr]]]] = {
    "add": (relay.add, relay.logical_or),
    "multiply": (relay.multiply, relay.logical_and),
    "maximum": (relay.maximum, relay.logical_or),
    "minimum": (relay.minimum, relay.logical_and),
    "and": (relay.bitwise_and, relay.logical_and),
    "or": (relay.bitwise_or, relay.logical_or),
    "xor": (relay.bitwise_xor, relay.logical_xor),
}
_COMPARISONS: Final = {
    "EQ": relay.equal,
    "NE": relay.not_equal,
    "LT": relay.less,
    "LE": relay.less_equal,
    "GT": relay.greater,
    "GE": relay.greater_equal,
}


def _register_unary(name: str, function: Callable[[Expr], Expr]) -> None:
    @converter(name)
    def convert(node: JaxNode, data: Expr) -> Expr:
        return function(data)


def _register_binary(name: str, function: Callable[[Expr, Expr], Expr]) -> None:
    @converter(name)
    def convert(node: JaxNode, left: Expr, right: Expr) -> Expr:
        return function(*node.narrowed(left, right))


def combined(node: JaxNode, name: str, left: Expr, right: Expr) -> Expr:
    """Two tensors combined by an operation that truth values have as well."""
    numeric, logical = _BINARY_OR_LOGICAL[name]
    return (logical if node.dtype(left) == "bool" else numeric)(*node.narrowed(left, right))


def _register_combined(name: str) -> None:
    @converter(name)
    def convert(node: JaxNode, left: Expr, right: Expr) -> Expr:
        return combined(node, name, left, right)


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)
for _name, _pair in _BINARY.items():
    _register_binary(_name, _pair)
for _name in _BINARY_OR_LOGICAL:
    _register_combined(_name)


@converter("exponential_minus_one")
def exponential_minus_one(node: JaxNode, data: Expr) -> Expr:
    """exp(x) - 1."""
    return expm1(node, data)


@converter("log_plus_one")
def log_plus_one(node: JaxNode, data: Expr) -> Expr:
    """log(1 + x), by the first terms of its series near zero, where the sum would lose x's last digits."""

    def scalar(value: float) -> Expr:
        return node.constant(value, data)

    series = scalar(1 / 5)
    for term in (4, 3, 2, 1):
        series = relay.subtract(scalar(1 / term), relay.multiply(data, series))
    near = relay.less(relay.abs(data), scalar(0.01))
    return relay.where(near, relay.multiply(data, series), relay.log(relay.add(data, scalar(1))))


@converter("cbrt")
def cbrt(node: JaxNode, data: Expr) -> Expr:
    """The cube root, of negative numbers too."""
    return relay.multiply(relay.sign(data), relay.power(relay.abs(data), node.constant(1 / 3, data)))


@converter("atan2")
def arctangent(node: JaxNode, rise: Expr, run: Expr) -> Expr:
    """The angle of a point, in all four quadrants."""
    return atan2(node, rise, run)


@converter("chlo.erfc")
def complementary_error_function(node: JaxNode, data: Expr) -> Expr:
    """1 - erf(x)."""
    return erfc(node, data)


@converter("chlo.square")
def square(node: JaxNode, data: Expr) -> Expr:
    """The product with itself."""
    return relay.multiply(data, data)


def direction_of(node_or_operation: Any) -> str:
    """How a compare operation compares."""
    found = node_or_operation.attributes["comparison_direction"]
    return str(found).rpartition(" ")[2].rstrip(">")


@converter("compare")
def compare(node: JaxNode, left: Expr, right: Expr) -> Expr:
    """A comparison of each element; truth values are ordered as 0 and 1."""
    direction = direction_of(node)
    if node.dtype(left) == "bool" and direction not in ("EQ", "NE"):
        left, right = relay.cast(left, "int8"), relay.cast(right, "int8")
    return _COMPARISONS[direction](*node.narrowed(left, right))


@converter("select")
def select(node: JaxNode, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Elements of one of two tensors; one condition may decide for all."""
    return relay.where(*node.narrowed(condition, yes, no))


@converter("clamp")
def clamp(node: JaxNode, low: Expr, data: Expr, high: Expr) -> Expr:
    """Each element held within limits, which may be scalars."""
    raised = relay.maximum(*node.narrowed(data, low))
    return relay.minimum(*node.narrowed(raised, high))


def converted(node: JaxNode, data: Expr, dtype: str) -> Expr:
    """A tensor of another element type; numbers are true unless they are zero."""
    if node.dtype(data) == dtype:
        return data
    if dtype == "bool":
        return relay.not_equal(data, node.constant(0, data))
    return relay.cast(data, dtype)


@converter("convert")
def convert(node: JaxNode, data: Expr) -> Expr:
    """A conversion of the element type."""
    dtype = node.result_dtype()
    small = node.source(data)
    if small is not data:
        return node.broadcast(converted(node, small, dtype), node.result_shape())
    return converted(node, data, dtype)


@converter("reduce_precision")
def reduce_precision(node: JaxNode, data: Expr) -> Expr:
    """Rounding to the digits of a smaller type."""
    digits = (int(node.attr("exponent_bits")), int(node.attr("mantissa_bits")))
    kinds = {(8, 23): "float32", (11, 52): "float64", (8, 7): "bfloat16", (5, 10): "float16"}
    if digits not in kinds:
        raise node.fail(f"{digits[0]} bits of exponent and {digits[1]} of mantissa are not a supported type")
    own = node.dtype(data)
    return data if kinds[digits] == own else relay.cast(relay.cast(data, kinds[digits]), own)


@converter("chlo.erf_inv")
def inverse_error_function(node: JaxNode, data: Expr) -> Expr:
    """What the error function is this of."""
    return special.erfinv(data, node.dtype(data))
