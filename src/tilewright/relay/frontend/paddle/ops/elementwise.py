"""Arithmetic, comparisons and functions of single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter


def aligned(node: PaddleNode, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Two tensors whose last axes match: ``axis`` says with which axis of the first the second begins."""
    axis = node.integer("axis", -1)
    ranks = node.rank(left), node.rank(right)
    if axis in (-1, ranks[0] - ranks[1]) or 0 in ranks or ranks[0] == ranks[1]:
        return left, right
    if ranks[0] < ranks[1]:
        raise node.fail(f"axis {axis} is given, and the second tensor has more dimensions than the first")
    sizes = node.static_shape(right, "the second tensor")
    return left, relay.reshape(right, (*sizes, *[1] * (ranks[0] - axis % ranks[0] - ranks[1])))


def _promoted(node: PaddleNode, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Two tensors of one element type: a floating-point type wins over integers."""
    kinds = node.dtype(left), node.dtype(right)
    if kinds[0] == kinds[1]:
        return left, right
    order = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
    chosen = max(kinds, key=order.index)
    return relay.cast(left, chosen), relay.cast(right, chosen)


def binary(node: PaddleNode, left: Expr, right: Expr, *, function: Callable[..., Expr]) -> Expr:
    """A function of pairs of elements."""
    followed = [node.followed(one) for one in (left, right)]
    if all(one is not None and len(one) == 1 for one in followed) and function in _SIZES:
        sizes = [one[0] for one in followed if one is not None and isinstance(one[0], int)]
        if len(sizes) == 2:
            made = _SIZES[function](*sizes)
            return node.of_elements([made], node.dtype(left), scalar=node.rank(left) == node.rank(right) == 0)
    return function(*_promoted(node, *aligned(node, left, right)))


_SIZES: Final[dict[Any, Callable[[int, int], int]]] = {
    relay.add: int.__add__,
    relay.subtract: int.__sub__,
    relay.multiply: int.__mul__,
}
"""The arithmetic of sizes."""
_BINARY: Final[dict[str, Callable[..., Expr]]] = {
    "elementwise_add": relay.add,
    "elementwise_sub": relay.subtract,
    "elementwise_mul": relay.multiply,
    "elementwise_max": relay.maximum,
    "elementwise_min": relay.minimum,
    "elementwise_fmax": relay.maximum,
    "elementwise_fmin": relay.minimum,
    "elementwise_pow": relay.power,
    "elementwise_floordiv": relay.floor_divide,
    "elementwise_mod": relay.floor_mod,
    "floor_mod": relay.floor_mod,
    "elementwise_prod": relay.multiply,
    "equal": relay.equal,
    "not_equal": relay.not_equal,
    "greater_than": relay.greater,
    "greater_equal": relay.greater_equal,
    "less_than": relay.less,
    "less_equal": relay.less_equal,
    "logical_and": relay.logical_and,
    "logical_or": relay.logical_or,
    "logical_xor": relay.logical_xor,
    "bitwise_and": relay.bitwise_and,
    "bitwise_or": relay.bitwise_or,
    "bitwise_xor": relay.bitwise_xor,
}
for _name, _function in _BINARY.items():
    converter(_name, reads="X Y")(partial(binary, function=_function))


@converter("elementwise_div", reads="X Y")
def divide(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """Quotients; those of integers are numbers of floating point where the program says so."""
    declared = node.declared("Out")
    left, right = _promoted(node, *aligned(node, left, right))
    if declared is not None and declared.dtype.startswith("float") and "int" in node.dtype(left):
        left, right = relay.cast(left, declared.dtype), relay.cast(right, declared.dtype)
    return relay.divide(left, right)


_UNARY: Final[dict[str, Callable[..., Expr]]] = {
    "abs": relay.abs,
    "acos": relay.acos,
    "acosh": relay.acosh,
    "asin": relay.asin,
    "asinh": relay.asinh,
    "atan": relay.atan,
    "atanh": relay.atanh,
    "ceil": relay.ceil,
    "cos": relay.cos,
    "cosh": relay.cosh,
    "erf": relay.erf,
    "exp": relay.exp,
    "floor": relay.floor,
    "isfinite_v2": relay.isfinite,
    "isinf_v2": relay.isinf,
    "isnan_v2": relay.isnan,
    "log": relay.log,
    "log2": relay.log2,
    "log10": relay.log10,
    "logical_not": relay.logical_not,
    "bitwise_not": relay.bitwise_not,
    "rsqrt": relay.rsqrt,
    "sign": relay.sign,
    "sin": relay.sin,
    "sinh": relay.sinh,
    "sqrt": relay.sqrt,
    "tan": relay.tan,
    "tanh": relay.tanh,
    "trunc": relay.trunc,
    "assign": lambda data: data,
    "share_data": lambda data: data,
}


def unary(node: PaddleNode, data: Expr, *, function: Callable[..., Expr]) -> Expr:
    """A function of single elements."""
    return function(data)


for _name, _function in _UNARY.items():
    converter(_name)(partial(unary, function=_function))


@converter("round")
def round_(node: PaddleNode, data: Expr) -> Expr:
    """The nearest integers; halves go away from zero."""
    half = node.constant(0.5, data)
    return relay.multiply(relay.sign(data), relay.floor(relay.add(relay.abs(data), half)))


@converter("square")
def square(node: PaddleNode, data: Expr) -> Expr:
    """Squares."""
    return relay.multiply(data, data)


@converter("reciprocal")
def reciprocal(node: PaddleNode, data: Expr) -> Expr:
    """One divided by each element."""
    return relay.divide(node.constant(1, data), data)


@converter("log1p")
def log1p(node: PaddleNode, data: Expr) -> Expr:
    """The logarithm of one more."""
    return relay.log(relay.add(data, node.constant(1, data)))


@converter("expm1")
def expm1(node: PaddleNode, data: Expr) -> Expr:
    """One less than the exponential."""
    return relay.subtract(relay.exp(data), node.constant(1, data))


@converter("pow", reads="X FactorTensor")
def power(node: PaddleNode, data: Expr, factor: Expr | None) -> Expr:
    """A power of each element."""
    return relay.power(data, node.scalar("factor", factor, 1.0, data))


@converter("scale", reads="X ScaleTensor")
def scale(node: PaddleNode, data: Expr, factor: Expr | None) -> Expr:
    """Elements times a number plus a number; the sum may come first."""
    kind = node.dtype(data)
    bias, by = node.real("bias", 0.0), node.scalar("scale", factor, 1.0, data)
    known = node.followed(data)
    scaled = node.value(by)
    if known is not None and scaled is not None and all(isinstance(one, int) for one in known):
        whole, more = int(scaled.reshape(-1)[0]), int(bias)
        after = node.flag("bias_after_scale", True)
        numbers = [
            one * whole + more if after else (one + more) * whole for one in known if isinstance(one, int)
        ]
        return node.of_elements(numbers, kind, scalar=node.rank(data) == 0)
    if bias and not node.flag("bias_after_scale", True):
        data = relay.add(data, node.constant(bias, kind))
    if scaled is None or scaled.reshape(-1)[0] != 1:
        data = relay.multiply(data, by)
    if bias and node.flag("bias_after_scale", True):
        data = relay.add(data, node.constant(bias, kind))
    return data


@converter("cast")
def cast(node: PaddleNode, data: Expr) -> Expr:
    """Elements in another type."""
    kind = node.kind("out_dtype", node.dtype(data))
    followed = node.followed(data)
    if followed is not None and kind in ("int32", "int64"):
        return node.of_elements(followed, kind, scalar=node.rank(data) == 0)
    return relay.cast(data, kind)


@converter("clip", reads="X Min Max")
def clip(node: PaddleNode, data: Expr, least: Expr | None, most: Expr | None) -> Expr:
    """Elements within bounds."""
    low = node.scalar("min", least, float("-inf"), "float64" if "int" in node.dtype(data) else data)
    high = node.scalar("max", most, float("inf"), "float64" if "int" in node.dtype(data) else data)
    known = node.value(low), node.value(high)
    if known[0] is not None and known[1] is not None:
        return relay.clip(data, float(known[0]), float(known[1]))
    kind = node.dtype(data)
    return relay.minimum(relay.maximum(data, relay.cast(low, kind)), relay.cast(high, kind))


@converter("sum", "add_n", reads="X*")
def add_all(node: PaddleNode, parts: list[Expr]) -> Expr:
    """The sum of tensors."""
    made = parts[0]
    for one in parts[1:]:
        made = relay.add(made, one)
    return made


@converter("where", reads="Condition X Y")
def where(node: PaddleNode, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Elements of one tensor where a condition holds, of another elsewhere."""
    return relay.where(condition, yes, no)


@converter("lerp", reads="X Y Weight")
def lerp(node: PaddleNode, left: Expr, right: Expr, weight: Expr) -> Expr:
    """A way from one tensor to another."""
    return relay.add(left, relay.multiply(relay.subtract(right, left), weight))


@converter("dropout", "dropout_nd")
def dropout(node: PaddleNode, data: Expr) -> Expr:
    """Nothing is dropped after training; older layers make up for what was dropped then."""
    if node.text("dropout_implementation", "downgrade_in_infer") == "upscale_in_train":
        return data
    if node.text("mode", "") == "upscale_in_train":
        return data
    return relay.multiply(data, node.constant(1.0 - node.real("dropout_prob", 0.5), data))


@converter("label_smooth")
def label_smooth(node: PaddleNode, data: Expr) -> Expr:
    """Labels mixed with a uniform distribution."""
    share = node.real("epsilon", 0.0)
    classes = node.static_shape(data)[-1]
    kept = relay.multiply(data, node.constant(1 - share, data))
    return relay.add(kept, node.constant(share / classes, data))
