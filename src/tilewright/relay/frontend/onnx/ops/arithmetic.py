"""Operators on two or more tensors that are broadcast together: arithmetic, logic, comparison, selection."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.elementwise import is_floating
from tilewright.relay.frontend.onnx.ops.partials import known_items
from tilewright.relay.frontend.onnx.registry import converter

Binary = Callable[[RelayExpr, RelayExpr], RelayExpr]


def _quotient(left: int, right: int) -> int | None:
    """Rounded towards zero."""
    if right == 0:
        return None
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


_BINARY: dict[str, tuple[Binary, Callable[[Any, Any], Any]]] = {
    "Add": (relay.add, operator.add),
    "And": (relay.logical_and, lambda left, right: left and right),
    "BitwiseAnd": (relay.bitwise_and, operator.and_),
    "BitwiseOr": (relay.bitwise_or, operator.or_),
    "BitwiseXor": (relay.bitwise_xor, operator.xor),
    "Div": (relay.divide, _quotient),
    "Equal": (relay.equal, operator.eq),
    "Greater": (relay.greater, operator.gt),
    "GreaterOrEqual": (relay.greater_equal, operator.ge),
    "Less": (relay.less, operator.lt),
    "LessOrEqual": (relay.less_equal, operator.le),
    "Mul": (relay.multiply, operator.mul),
    "Or": (relay.logical_or, lambda left, right: left or right),
    "Sub": (relay.subtract, operator.sub),
    "Xor": (relay.logical_xor, operator.ne),
}


def _aligned(node: Node, left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """The right operand in its place before opset 7: its axes are those of the left one from ``axis`` on."""
    axis = node.attr("axis", None)
    if not node.attr("broadcast", 0) or axis is None:
        return right
    after = node.rank(left) - node.axis(0, node.rank(left)) - node.rank(right)
    return relay.expand_dims(right, node.rank(right), after) if after > 0 else right


def _register_binary(name: str, function: Binary, of_items: Callable[[Any, Any], Any]) -> None:
    @converter(name, since=7)
    def convert(node: Node, left: RelayExpr, right: RelayExpr) -> RelayExpr:
        return known_items(node, function(left, right), of_items, left, right)

    @converter(name)
    def convert_old(node: Node, left: RelayExpr, right: RelayExpr) -> RelayExpr:
        return function(left, _aligned(node, left, right))


for _name, (_function, _of_items) in _BINARY.items():
    _register_binary(_name, _function, _of_items)


@converter("Mod")
def modulo(node: Node, left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """The remainder: with the sign of the divisor, or with ``fmod`` that of the dividend."""
    if node.attr("fmod", 0):
        return known_items(
            node,
            relay.mod(left, right),
            lambda one, other: one - other * (_quotient(one, other) or 0) if other else None,
            left,
            right,
        )
    return known_items(
        node, relay.floor_mod(left, right), lambda one, other: one % other if other else None, left, right
    )


@converter("BitShift")
def bit_shift(node: Node, left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """The bits moved up or down."""
    direction = node.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.fail(f"the direction is {direction!r}, not LEFT or RIGHT")
    return (relay.left_shift if direction == "LEFT" else relay.right_shift)(left, right)


@converter("Pow")
def power(node: Node, base: RelayExpr, exponent: RelayExpr) -> RelayExpr:
    """A power, in the type of the base; small constant exponents are products and roots."""
    known = node.value(exponent)
    if known is not None and known.size == 1 and node.rank(exponent) <= node.rank(base):
        simple = _simple_power(node, base, float(known.item()))
        if simple is not None:
            return simple
    if is_floating(node, base):
        return relay.power(base, _converted(node, exponent, node.dtype(base)))
    if not is_floating(node, exponent):
        return relay.power(base, _converted(node, exponent, node.dtype(base)))
    wide, steps = relay.cast(base, "float64"), relay.cast(exponent, "float64")
    found = relay.power(wide, steps)
    # A whole power of an integer is whole: what is missing to it is an error of rounding.
    whole = relay.equal(steps, relay.floor(steps))
    return relay.cast(relay.where(whole, relay.round(found), relay.trunc(found)), node.dtype(base))


def _simple_power(node: Node, base: RelayExpr, exponent: float) -> RelayExpr | None:
    if exponent == 1:
        return base
    if exponent == 2:
        return relay.multiply(base, base)
    if exponent == 3:
        return relay.multiply(relay.multiply(base, base), base)
    if not is_floating(node, base):
        return None
    if exponent == 0.5:
        return relay.sqrt(base)
    if exponent == -0.5:
        return relay.divide(node.constant(1, base), relay.sqrt(base))
    return relay.divide(node.constant(1, base), base) if exponent == -1 else None


def _converted(node: Node, data: RelayExpr, dtype: str) -> RelayExpr:
    return data if node.dtype(data) == dtype else relay.cast(data, dtype)


# Any number of tensors


@converter("Max")
def maximum(node: Node, *tensors: RelayExpr) -> RelayExpr:
    """The greatest of the elements at each place."""
    return functools.reduce(
        lambda left, right: known_items(node, relay.maximum(left, right), max, left, right), tensors
    )


@converter("Min")
def minimum(node: Node, *tensors: RelayExpr) -> RelayExpr:
    """The least of the elements at each place."""
    return functools.reduce(
        lambda left, right: known_items(node, relay.minimum(left, right), min, left, right), tensors
    )


@converter("Sum")
def total(node: Node, *tensors: RelayExpr) -> RelayExpr:
    """The sum of the elements at each place."""
    return functools.reduce(relay.add, tensors)


@converter("Mean")
def mean(node: Node, *tensors: RelayExpr) -> RelayExpr:
    """The mean of the elements at each place."""
    return relay.divide(functools.reduce(relay.add, tensors), node.constant(len(tensors), tensors[0]))


@converter("Where")
def where(node: Node, condition: RelayExpr, left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """Elements of one tensor where a condition holds, of another elsewhere."""
    return known_items(
        node,
        relay.where(condition, left, right),
        lambda holds, one, other: one if holds else other,
        condition,
        left,
        right,
    )
