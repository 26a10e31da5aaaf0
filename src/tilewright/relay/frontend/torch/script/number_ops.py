"""Arithmetic on numbers: computed at import where they are known, else by the program."""

from __future__ import annotations

import builtins
import math
import operator as python
from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.torch.numbers import find_number_function
from tilewright.relay.frontend.torch.script.node import ScriptNode
from tilewright.relay.frontend.torch.script.registry import operator
from tilewright.relay.frontend.torch.script.values import Tensor

_OVERLOADS: Final = (
    "int",
    "float",
    "int_float",
    "float_int",
    "bool",
    "bool_int",
    "int_bool",
    "bool_float",
    "float_bool",
    "Scalar_Scalar",
)
"""The overloads of functions of two numbers. Without an overload the number is any."""

_BINARY: Final[dict[str, Any]] = {
    "aten::add": python.add,
    "aten::sub": python.sub,
    "aten::mul": python.mul,
    "aten::div": python.truediv,
    "aten::floordiv": python.floordiv,
    "aten::remainder": python.mod,
    "aten::pow": python.pow,
    "aten::eq": python.eq,
    "aten::ne": python.ne,
    "aten::lt": python.lt,
    "aten::le": python.le,
    "aten::gt": python.gt,
    "aten::ge": python.ge,
    "aten::__and__": python.and_,
    "aten::__or__": python.or_,
    "aten::__lshift__": python.lshift,
    "aten::__rshift__": python.rshift,
    "prim::max": builtins.max,
    "prim::min": builtins.min,
}
_UNARY: Final[dict[str, Any]] = {
    "aten::neg": python.neg,
    "aten::ceil": math.ceil,
    "aten::floor": math.floor,
    "aten::sqrt": math.sqrt,
    "aten::log2": math.log2,
    "aten::exp": math.exp,
    "aten::log": math.log,
    "aten::round": builtins.round,
    "prim::abs": builtins.abs,
}


def _function(known: Any) -> Callable[..., Any]:
    convert = find_number_function(known)
    assert convert is not None, known

    def apply(node: ScriptNode, *values: Any) -> Any:
        return convert(node, *(node.resolved(value) for value in values))

    return apply


for _name, _known in _BINARY.items():
    operator(*(f"{_name}.{overload}" for overload in _OVERLOADS))(_function(_known))
for _name, _known in _UNARY.items():
    operator(*(f"{_name}.{overload}" for overload in ("int", "float", "Scalar")))(_function(_known))


@operator("aten::__not__")
def not_(node: ScriptNode, value: Any) -> Any:
    """The opposite of a truth value."""
    return _function(python.not_)(node, value)


# Conversions


@operator("aten::Int", "aten::IntImplicit")
def to_int(node: ScriptNode, value: Any) -> Any:
    """An integer."""
    return _converted(node, value, int, "int64")


@operator("aten::Float", "aten::FloatImplicit")
def to_float(node: ScriptNode, value: Any) -> Any:
    """A floating-point number."""
    return _converted(node, value, float, "float64")


@operator("aten::Bool")
def to_bool(node: ScriptNode, value: Any) -> Any:
    """A truth value."""
    return _converted(node, value, bool, "bool")


@operator("aten::ScalarImplicit", "aten::Number")
def to_number(node: ScriptNode, value: Any) -> Any:
    """The number in a tensor."""
    known = node.known(value)
    if not isinstance(known, Tensor):
        return known
    return _without_dimensions(node, node.store.read(known))


def _converted(node: ScriptNode, value: Any, known: Callable[[Any], Any], dtype: str) -> Any:
    found = node.known(value)
    if not isinstance(found, Tensor):
        return known(found)
    expr: Any = node.store.read(found)
    if dtype == "int64" and node.dtype(expr).startswith("float"):
        expr = relay.trunc(expr)
    return _without_dimensions(node, node.cast(expr, dtype))


def _without_dimensions(node: ScriptNode, expr: RelayExpr) -> RelayExpr:
    # The expression is another one even where nothing changes: one is a tensor, the other a number.
    return expr if expr in node.scope.numbers else relay.reshape(expr, ())


# Lists of numbers


@operator("prim::min.self_int", "prim::min.self_float", "prim::min.self_bool")
def least(node: ScriptNode, values: Any) -> Any:
    """The least of a list."""
    return _folded(node, values, builtins.min)


@operator("prim::max.self_int", "prim::max.self_float", "prim::max.self_bool")
def greatest(node: ScriptNode, values: Any) -> Any:
    """The greatest of a list."""
    return _folded(node, values, builtins.max)


@operator("aten::sum.int", "aten::sum.float")
def total(node: ScriptNode, values: Any) -> Any:
    """The sum of a list."""
    return _folded(node, values, python.add)


def _folded(node: ScriptNode, values: Any, known: Any) -> Any:
    items = [node.resolved(item) for item in node.items(values)]
    convert = find_number_function(known)
    assert convert is not None
    found = items[0]
    for item in items[1:]:
        found = convert(node, found, item)
    return found


@operator("aten::__range_length")
def range_length(node: ScriptNode, low: Any, high: Any, step: Any) -> Any:
    """How many numbers ``range(low, high, step)`` has."""
    low, high, step = (node.resolved(value) for value in (low, high, step))
    if not any(isinstance(value, RelayExpr) for value in (low, high, step)):
        return len(range(low, high, step))
    add, sub, divide = (find_number_function(one) for one in (python.add, python.sub, python.floordiv))
    larger = find_number_function(builtins.max)
    assert add is not None and sub is not None and divide is not None and larger is not None
    if isinstance(step, RelayExpr):
        raise node.needs_value(step, "the step of a range")
    distance = sub(node, high, low) if step > 0 else sub(node, low, high)
    return larger(node, divide(node, add(node, distance, abs(step) - 1), abs(step)), 0)


@operator("aten::__derive_index")
def derive_index(node: ScriptNode, index: Any, start: Any, step: Any) -> Any:
    """A number of a range."""
    return _function(python.add)(node, start, _function(python.mul)(node, index, step))
