"""Python's numbers in a graph: arithmetic on sizes, which are known or expressions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import TupleGetItem
from tilewright.relay.frontend.torch.node import TorchNode

NumberFunction = Callable[..., Any]


def _as_expr(node: TorchNode, value: Any, dtype: str) -> Expr:
    return node.cast(value, dtype)


def _kind(node: TorchNode, value: Any) -> str:
    if isinstance(value, RelayExpr):
        return node.dtype(value)
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"


def _arithmetic(
    known: Callable[..., Any], build: Callable[[Expr, Expr], Expr], as_float: bool = False
) -> NumberFunction:
    """A function of two numbers: computed now where both are known."""

    def apply(node: TorchNode, one: Any, other: Any) -> Any:
        if not isinstance(one, RelayExpr) and not isinstance(other, RelayExpr):
            return known(one, other)
        kinds = {_kind(node, one), _kind(node, other)}
        dtype = "float64" if as_float or any(kind.startswith("float") for kind in kinds) else "int64"
        return node.scope.number(build(_as_expr(node, one, dtype), _as_expr(node, other, dtype)))

    return apply


def _logical(known: Callable[..., Any], build: Callable[[Expr, Expr], Expr]) -> NumberFunction:
    def apply(node: TorchNode, one: Any, other: Any) -> Any:
        if not isinstance(one, RelayExpr) and not isinstance(other, RelayExpr):
            return known(one, other)
        return node.scope.number(build(_as_expr(node, one, "bool"), _as_expr(node, other, "bool")))

    return apply


def _unary(known: Callable[..., Any], build: Callable[[TorchNode, Expr], Expr]) -> NumberFunction:
    def apply(node: TorchNode, value: Any) -> Any:
        return node.scope.number(build(node, value)) if isinstance(value, Expr) else known(value)

    return apply


def _to_int(rounding: Callable[[Expr], Expr]) -> Callable[[TorchNode, Expr], Expr]:
    def build(node: TorchNode, value: Expr) -> Expr:
        return value if node.dtype(value) == "int64" else relay.cast(rounding(value), "int64")

    return build


def item(node: TorchNode, value: Any, place: Any) -> Any:
    """An element of a list or of a tuple that an operator returns."""
    if isinstance(value, RelayExpr):
        return TupleGetItem(value, int(place))
    return value[place]


def _choose(node: TorchNode, condition: Any, one: Any, other: Any) -> Any:
    if not isinstance(condition, RelayExpr):
        return one if condition else other
    dtype = "float64" if "float64" in (_kind(node, one), _kind(node, other)) else "int64"
    return node.scope.number(relay.where(condition, _as_expr(node, one, dtype), _as_expr(node, other, dtype)))


def _power(one: Expr, other: Expr) -> Expr:
    return relay.power(one, other)


def _remainder(one: Expr, other: Expr) -> Expr:
    return relay.floor_mod(one, other)


def _rounded(node: TorchNode, value: Any, digits: int = 0) -> Any:
    if not isinstance(value, RelayExpr):
        return round(value, digits) if digits else round(value)
    return node.scope.number(relay.cast(relay.round(value), "int64"))


def _float_function(known: Callable[[Any], Any], build: Callable[[Expr], Expr]) -> NumberFunction:
    return _unary(known, lambda node, value: build(_as_expr(node, value, "float64")))


_FUNCTIONS: Final[dict[str, NumberFunction]] = {
    "getitem": item,
    "add": _arithmetic(operator.add, relay.add),
    "sub": _arithmetic(operator.sub, relay.subtract),
    "mul": _arithmetic(operator.mul, relay.multiply),
    "floordiv": _arithmetic(operator.floordiv, relay.floor_divide),
    "truediv": _arithmetic(operator.truediv, relay.divide, as_float=True),
    "mod": _arithmetic(operator.mod, _remainder),
    "pow": _arithmetic(operator.pow, _power),
    "lshift": _arithmetic(operator.lshift, relay.left_shift),
    "rshift": _arithmetic(operator.rshift, relay.right_shift),
    "eq": _arithmetic(operator.eq, relay.equal),
    "ne": _arithmetic(operator.ne, relay.not_equal),
    "lt": _arithmetic(operator.lt, relay.less),
    "le": _arithmetic(operator.le, relay.less_equal),
    "gt": _arithmetic(operator.gt, relay.greater),
    "ge": _arithmetic(operator.ge, relay.greater_equal),
    "and_": _logical(operator.and_, relay.logical_and),
    "or_": _logical(operator.or_, relay.logical_or),
    "sym_max": _arithmetic(max, relay.maximum),
    "sym_min": _arithmetic(min, relay.minimum),
    "max": _arithmetic(max, relay.maximum),
    "min": _arithmetic(min, relay.minimum),
    "neg": _unary(operator.neg, lambda node, value: relay.negative(value)),
    "pos": _unary(operator.pos, lambda node, value: value),
    "abs": _unary(abs, lambda node, value: relay.abs(value)),
    "not_": _unary(operator.not_, lambda node, value: relay.logical_not(_as_expr(node, value, "bool"))),
    "sym_not": _unary(operator.not_, lambda node, value: relay.logical_not(_as_expr(node, value, "bool"))),
    "sym_float": _unary(float, lambda node, value: _as_expr(node, value, "float64")),
    "sym_int": _unary(int, _to_int(relay.trunc)),
    "int": _unary(int, _to_int(relay.trunc)),
    "float": _unary(float, lambda node, value: _as_expr(node, value, "float64")),
    "bool": _unary(bool, lambda node, value: _as_expr(node, value, "bool")),
    "ceil": _unary(math.ceil, _to_int(relay.ceil)),
    "floor": _unary(math.floor, _to_int(relay.floor)),
    "trunc": _unary(math.trunc, _to_int(relay.trunc)),
    "round": _rounded,
    "sym_ite": _choose,
    "_sym_sqrt": _float_function(math.sqrt, relay.sqrt),
    "sqrt": _float_function(math.sqrt, relay.sqrt),
    "_sym_log2": _float_function(math.log2, relay.log2),
    "log2": _float_function(math.log2, relay.log2),
    "exp": _float_function(math.exp, relay.exp),
    "log": _float_function(math.log, relay.log),
}
"""By the function's own name; those of ``operator``, ``math``, ``builtins`` and ``torch``."""

_HOMES: Final = frozenset({"_operator", "operator", "math", "builtins", "torch"})


def sum_of_numbers(node: TorchNode, values: Any) -> Any:
    """``torch.sym_sum``."""
    found: Any = 0
    for value in values:
        found = _FUNCTIONS["add"](node, found, value)
    return found


def find_number_function(target: Any) -> NumberFunction | None:
    """The conversion of a Python function of numbers."""
    if getattr(target, "__module__", "") not in _HOMES and not str(
        getattr(target, "__module__", "")
    ).startswith(("torch.fx", "torch.utils._sympy")):
        return None
    name = str(getattr(target, "__name__", ""))
    return sum_of_numbers if name == "sym_sum" else _FUNCTIONS.get(name)
