"""Elementwise functions, with broadcasting, with scalars, and what leaves elements as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import pi
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter

_UNARY: Final[dict[str, Callable[[Any], Expr]]] = {
    name: getattr(relay, name)
    for name in (
        "abs", "exp", "log", "log2", "log10", "sqrt", "rsqrt", "negative", "sign", "floor", "ceil", "trunc",
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "erf",
    )
}  # fmt: skip
_UNARY.update(
    fix=relay.trunc,
    arcsin=relay.asin,
    arccos=relay.acos,
    arctan=relay.atan,
    arcsinh=relay.asinh,
    arccosh=relay.acosh,
    arctanh=relay.atanh,
    square=lambda data: relay.multiply(data, data),
)

_BINARY: Final[dict[str, Callable[[Any, Any], Expr]]] = {
    "add": relay.add,
    "plus": relay.add,
    "sub": relay.subtract,
    "minus": relay.subtract,
    "mul": relay.multiply,
    "div": relay.divide,
    "mod": relay.floor_mod,
    "power": relay.power,
    "maximum": relay.maximum,
    "minimum": relay.minimum,
    "hypot": lambda left, right: relay.sqrt(
        relay.add(relay.multiply(left, left), relay.multiply(right, right))
    ),
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Expr]]] = {
    "equal": relay.equal,
    "not_equal": relay.not_equal,
    "greater": relay.greater,
    "greater_equal": relay.greater_equal,
    "lesser": relay.less,
    "lesser_equal": relay.less_equal,
}
_LOGIC: Final[dict[str, Callable[[Any, Any], Expr]]] = {
    "logical_and": relay.logical_and,
    "logical_or": relay.logical_or,
    "logical_xor": relay.logical_xor,
}


def _unary(node: SymbolNode, data: Expr, *, function: Callable[[Any], Expr]) -> Expr:
    return function(data)


def _binary(node: SymbolNode, left: Expr, right: Expr, *, function: Callable[[Any, Any], Expr]) -> Expr:
    return function(left, right)


def _scalar(
    node: SymbolNode, data: Expr, *, function: Callable[[Any, Any], Expr], first: bool = False
) -> Expr:
    scalar = node.constant(node.number("scalar", 1.0), data)
    return function(scalar, data) if first else function(data, scalar)


def _numbered(node: SymbolNode, *inputs: Expr, function: Callable[..., Expr], **options: Any) -> Expr:
    """A comparison's truth values as zeros and ones of the data's element type, as MXNet has them."""
    return relay.cast(function(node, *inputs, **options), node.dtype(inputs[0]))


def truth(node: SymbolNode, data: Expr) -> Expr:
    """True where elements are not zero."""
    return data if node.dtype(data) == "bool" else relay.not_equal(data, node.constant(0, data))


def _logic(node: SymbolNode, left: Expr, right: Expr, *, function: Callable[[Any, Any], Expr]) -> Expr:
    return relay.cast(function(truth(node, left), truth(node, right)), node.dtype(left))


def _logic_scalar(node: SymbolNode, data: Expr, *, function: Callable[[Any, Any], Expr]) -> Expr:
    given = node.constant(bool(node.number("scalar", 1.0)), "bool")
    return relay.cast(function(truth(node, data), given), node.dtype(data))


for _name, _function in _UNARY.items():
    converter(_name, f"_np_{_name}", f"_npi_{_name}")(partial(_unary, function=_function))
for _name, _two in _BINARY.items():
    converter(f"broadcast_{_name}", f"elemwise_{_name}", f"_{_name}")(partial(_binary, function=_two))
    converter(f"_{_name}_scalar")(partial(_scalar, function=_two))
for _name in ("minus", "div", "mod", "power"):
    converter(f"_r{_name}_scalar")(partial(_scalar, function=_BINARY[_name], first=True))
for _name, _two in _COMPARISONS.items():
    converter(f"broadcast_{_name}", f"_{_name}")(partial(_numbered, function=partial(_binary, function=_two)))
    converter(f"_{_name}_scalar")(partial(_numbered, function=partial(_scalar, function=_two)))
for _name, _two in _LOGIC.items():
    converter(f"broadcast_{_name}", f"_{_name}")(partial(_logic, function=_two))
    converter(f"_{_name}_scalar")(partial(_logic_scalar, function=_two))
for _old, _name in (("Plus", "add"), ("Minus", "sub"), ("Mul", "mul"), ("Div", "div"), ("Power", "power")):
    converter(f"_{_old}")(partial(_binary, function=_BINARY[_name]))
    converter(f"_{_old}Scalar")(partial(_scalar, function=_BINARY[_name]))
for _old, _name in (("Minus", "sub"), ("Div", "div"), ("Power", "power")):
    converter(f"_R{_old}Scalar")(partial(_scalar, function=_BINARY[_name], first=True))
for _name, _own in (
    ("add", "add"),
    ("subtract", "sub"),
    ("multiply", "mul"),
    ("true_divide", "div"),
    ("power", "power"),
    ("maximum", "maximum"),
    ("minimum", "minimum"),
):
    converter(f"_npi_{_name}")(partial(_binary, function=_BINARY[_own]))
    converter(f"_npi_{_name}_scalar")(partial(_scalar, function=_BINARY[_own]))
for _name, _own in (("subtract", "sub"), ("true_divide", "div"), ("power", "power")):
    converter(f"_npi_r{_name}_scalar")(partial(_scalar, function=_BINARY[_own], first=True))


@converter("expm1")
def expm1(node: SymbolNode, data: Expr) -> Expr:
    """exp(x) - 1."""
    return relay.subtract(relay.exp(data), node.constant(1, data))


@converter("log1p")
def log1p(node: SymbolNode, data: Expr) -> Expr:
    """log(1 + x)."""
    return relay.log(relay.add(node.constant(1, data), data))


@converter("cbrt")
def cbrt(node: SymbolNode, data: Expr) -> Expr:
    """The cube root."""
    return relay.multiply(relay.sign(data), relay.power(relay.abs(data), node.constant(1 / 3, data)))


@converter("round")
def round_(node: SymbolNode, data: Expr) -> Expr:
    """The nearest integer, halves away from zero."""
    return relay.multiply(relay.sign(data), relay.floor(relay.add(relay.abs(data), node.constant(0.5, data))))


@converter("rint")
def rint(node: SymbolNode, data: Expr) -> Expr:
    """The nearest integer; MXNet takes the lower one of halves."""
    return relay.ceil(relay.subtract(data, node.constant(0.5, data)))


@converter("reciprocal")
def reciprocal(node: SymbolNode, data: Expr) -> Expr:
    """1 / x."""
    return relay.divide(node.constant(1, data), data)


@converter("degrees")
def degrees(node: SymbolNode, data: Expr) -> Expr:
    """Radians as degrees."""
    return relay.multiply(data, node.constant(180 / pi, data))


@converter("radians")
def radians(node: SymbolNode, data: Expr) -> Expr:
    """Degrees as radians."""
    return relay.multiply(data, node.constant(pi / 180, data))


@converter("logical_not")
def logical_not(node: SymbolNode, data: Expr) -> Expr:
    """One where elements are zero."""
    return relay.cast(relay.equal(data, node.constant(0, data)), node.dtype(data))


@converter("smooth_l1")
def smooth_l1(node: SymbolNode, data: Expr) -> Expr:
    """A parabola around zero, lines further out."""
    square = node.number("scalar", 1.0) ** 2
    size = relay.abs(data)
    near = relay.multiply(relay.multiply(data, data), node.constant(square / 2, data))
    far = relay.subtract(size, node.constant(0.5 / square, data))
    return relay.where(relay.less(size, node.constant(1 / square, data)), near, far)


@converter("clip")
def clip(node: SymbolNode, data: Expr) -> Expr:
    """Elements between two numbers."""
    return relay.clip(data, node.number("a_min"), node.number("a_max"))


@converter("add_n", "ElementWiseSum")
def add_n(node: SymbolNode, *inputs: Expr) -> Expr:
    """The sum of all inputs."""
    if not inputs:
        raise node.fail("there are no inputs")
    return reduce(relay.add, inputs)


@converter("where")
def where(node: SymbolNode, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """Elements of one tensor or another; a vector chooses rows."""
    chosen = truth(node, condition)
    rank = node.rank(yes)
    if node.rank(condition) == 1 < rank:
        chosen = relay.reshape(chosen, (-1, *(1,) * (rank - 1)))
    return relay.where(chosen, yes, no)


@converter("Cast", "cast", "amp_cast")
def cast(node: SymbolNode, data: Expr) -> Expr:
    """Elements of another type."""
    return relay.cast(data, node.text("dtype", "float32"))


@converter("amp_multicast")
def amp_multicast(node: SymbolNode, *inputs: Expr) -> list[Expr]:
    """Inputs of one type: the widest, or with cast_narrow the narrowest."""
    kinds = {node.dtype(one) for one in inputs}
    widths = sorted(kinds, key=lambda kind: int("".join(filter(str.isdigit, kind)) or 8))
    kind = widths[0 if node.flag("cast_narrow") else -1]
    return [relay.cast(one, kind) for one in inputs]


@converter(
    "_copy", "identity", "BlockGrad", "stop_gradient", "make_loss", "MakeLoss", "Dropout", "_npx_dropout"
)
def same(node: SymbolNode, data: Expr, *unused: Expr) -> Expr:
    """The elements as they are: what the operator does is for training only."""
    return data
