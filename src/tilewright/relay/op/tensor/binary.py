"""Operators on two operands of one element type, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call
from tilewright.relay.op import layout_rules
from tilewright.relay.op.calls import call, number
from tilewright.relay.op.definition import Gradient, OpPattern, Relation, define, named_after
from tilewright.relay.op.relations import (
    broadcast,
    broadcast_comparison,
    broadcast_integers,
    broadcast_numbers,
)
from tilewright.relay.op.tensor import reference
from tilewright.relay.op.tensor.reference import Array

Partial = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""(left, right, result, gradient of the result) to the gradients of both operands, in the shape of the result."""


def _binary(
    name: str,
    reference: Callable[[Array, Array], Any],
    description: str,
    relation: Relation,
    partial: Partial | None = None,
    gradient: Gradient | None = None,
) -> Callable[[RelayExpr, RelayExpr], Call]:
    """Define an operator of two operands; gives the function that calls it."""
    compute = getattr(topi, name)
    to_bool = relation is broadcast_comparison
    if partial is not None:
        gradient = _collapsed(partial)
    elif to_bool:
        gradient = _flat
    op = define(
        name,
        arguments=("lhs", "rhs"),
        relation=relation,
        compute=lambda attrs, inputs, out_type: [compute(*inputs)],
        reference=lambda attrs, lhs, rhs: np.asarray(reference(lhs, rhs)).astype(
            np.bool_ if to_bool else lhs.dtype, copy=False
        ),
        gradient=gradient,
        layout=layout_rules.broadcast,
        kind=OpPattern.BROADCAST,
        level=1 if name in ("add", "subtract", "multiply", "divide") else 4,
        description=description,
    )

    def made(lhs: RelayExpr, rhs: RelayExpr) -> Call:
        return Call(op, (lhs, rhs))

    return named_after(op, made)


def _collapsed(partial: Partial) -> Gradient:
    """Gradients summed over the axes along which an operand was repeated."""

    def gradient(result: Call, grad: RelayExpr) -> list[RelayExpr]:
        left, right = result.args
        made = partial(left, right, result, grad)
        return [
            call("collapse_sum_like", each, operand)
            for each, operand in zip(made, (left, right), strict=True)
        ]

    return gradient


def _flat(result: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The gradient of a result that does not change with the operands, but for jumps."""
    return [call("zeros_like", operand) for operand in result.args]


def _chosen_where(comparison: str) -> Partial:
    """The gradient goes to the left operand where the comparison holds, else to the right one."""

    def partial(left: Any, right: Any, result: Any, grad: Any) -> tuple[Any, Any]:
        chosen = call("cast_like", call(comparison, left, right), grad)
        return grad * chosen, grad * (number(1, result) - chosen)

    return partial


def _power_partial(left: Any, right: Any, result: Any, grad: Any) -> tuple[Any, Any]:
    slope = grad * right * power(left, right - number(1, result))
    return slope, grad * result * call("log", left)


add = _binary(
    "add", np.add, "Sum.", broadcast_numbers, partial=lambda left, right, result, grad: (grad, grad)
)
subtract = _binary(
    "subtract",
    np.subtract,
    "Difference.",
    broadcast_numbers,
    partial=lambda left, right, result, grad: (grad, -grad),
)
multiply = _binary(
    "multiply",
    np.multiply,
    "Product.",
    broadcast,
    partial=lambda left, right, result, grad: (grad * right, grad * left),
)
divide = _binary(
    "divide",
    reference.quotient,
    "Quotient; of integers, rounded towards zero.",
    broadcast_numbers,
    partial=lambda left, right, result, grad: (grad / right, -(grad * result / right)),
)
floor_divide = _binary(
    "floor_divide", reference.floored_quotient, "Quotient rounded down.", broadcast_numbers, gradient=_flat
)
mod = _binary("mod", reference.remainder, "Remainder with the sign of the dividend.", broadcast_numbers)
floor_mod = _binary(
    "floor_mod", reference.floored_remainder, "Remainder with the sign of the divisor.", broadcast_numbers
)
power = _binary(
    "power",
    reference.power,
    "The left operand to the power of the right; a negative power of an integer is rounded towards zero.",
    broadcast_numbers,
    partial=_power_partial,
)
maximum = _binary(
    "maximum",
    lambda left, right: np.where((left >= right) | (left != left), left, right),
    "The greater of two; NaN where either is.",
    broadcast,
    partial=_chosen_where("greater_equal"),
)
minimum = _binary(
    "minimum",
    lambda left, right: np.where((left <= right) | (left != left), left, right),
    "The lesser of two; NaN where either is.",
    broadcast,
    partial=_chosen_where("less_equal"),
)

equal = _binary("equal", np.equal, "True where both are equal.", broadcast_comparison)
not_equal = _binary("not_equal", np.not_equal, "True where they differ.", broadcast_comparison)
less = _binary("less", np.less, "True where the left is less.", broadcast_comparison)
less_equal = _binary("less_equal", np.less_equal, "True where the left is not greater.", broadcast_comparison)
greater = _binary("greater", np.greater, "True where the left is greater.", broadcast_comparison)
greater_equal = _binary(
    "greater_equal",
    np.greater_equal,
    "True where the left is not less.",
    broadcast_comparison,
)

logical_and = _binary("logical_and", np.logical_and, "True where both are.", broadcast_comparison)
logical_or = _binary("logical_or", np.logical_or, "True where one is.", broadcast_comparison)
logical_xor = _binary("logical_xor", np.logical_xor, "True where exactly one is.", broadcast_comparison)
bitwise_and = _binary("bitwise_and", np.bitwise_and, "The bits set in both.", broadcast_integers)
bitwise_or = _binary("bitwise_or", np.bitwise_or, "The bits set in one or both.", broadcast_integers)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor, "The bits set in exactly one.", broadcast_integers)
left_shift = _binary(
    "left_shift",
    reference.left_shift,
    "The bits moved up; a count below zero, or of all bits and more, gives zero.",
    broadcast_integers,
)
right_shift = _binary(
    "right_shift",
    reference.right_shift,
    "The bits moved down; signed numbers keep their sign, which is all that a count out of range leaves.",
    broadcast_integers,
)
