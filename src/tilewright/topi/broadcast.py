"""Arithmetic, comparison and logic of two values, tensors of broadcastable shapes or scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, Let, PrimExpr, Select, Var
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import (
    as_extents,
    broadcast_index,
    broadcast_shapes,
    known_different,
    shape_text,
)
from tilewright.te.elementwise import Operand, binary
from tilewright.te.tensor import Tensor
from tilewright.tir import op
from tilewright.topi.computed import computed
from tilewright.topi.tag import BROADCAST, ELEMWISE


def broadcast_to(data: Tensor, shape: ExprLike | Sequence[ExprLike]) -> Tensor:
    """The tensor repeated to a shape."""
    target = as_extents(shape)
    if len(target) < len(data.shape):
        raise ExpressionError(
            f"broadcast_to: {shape_text(data.shape)} does not fit into {shape_text(target)}"
        )
    meeting = broadcast_shapes("broadcast_to", data.shape, target)
    for extent, wanted in zip(meeting, target, strict=True):
        if known_different(extent, wanted):
            raise ExpressionError(
                f"broadcast_to: {shape_text(data.shape)} does not fit into {shape_text(target)}"
            )
    return computed(
        target, lambda *i: data(*broadcast_index(i, data.shape, target)), name="T_broadcast_to", tag=BROADCAST
    )


def _truth(value: PrimExpr) -> PrimExpr:
    """A number as a condition: true where it is not zero."""
    return value if value.dtype.is_bool else operators.not_equal(value, operators.const(0, value.dtype))


def _truncated_remainder(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    a, b = operators.match_types(a, b)
    return op.fmod(a, b) if a.dtype.is_float else operators.truncmod(a, b)


def _power(x: PrimExpr, y: PrimExpr) -> PrimExpr:
    a, b = operators.match_types(x, y)
    return op.power(a, b) if a.dtype.is_float else _integer_power(a, b)


def _integer_power(x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """x to the power of y by squaring, in the arithmetic of the type; a negative exponent rounds towards zero."""
    kind = x.dtype
    if kind.is_bool:
        raise ExpressionError("power takes numbers, not bool: convert them with cast first")
    one, zero = operators.const(1, kind), operators.const(0, kind)
    squares = [Var(f"square{bit}", kind) for bit in range(kind.bits - (1 if kind.is_int else 0))]
    exponent = Var("exponent", kind)
    result = one
    for bit, square in enumerate(squares):
        odd = operators.not_equal(operators.bitwise_and(operators.right_shift(exponent, bit), one), zero)
        result = operators.multiply(result, Select(odd, square, one))
    if kind.is_int:
        odd = operators.not_equal(operators.bitwise_and(exponent, one), zero)
        minus_one = operators.const(-1, kind)
        reciprocal = Select(
            squares[0].equal(one),
            one,
            Select(squares[0].equal(minus_one), Select(odd, minus_one, one), zero),
        )
        result = Select(exponent < zero, reciprocal, result)
    for bit in range(len(squares) - 1, -1, -1):
        value = x if bit == 0 else operators.multiply(squares[bit - 1], squares[bit - 1])
        result = Let(squares[bit], value, result)
    return Let(exponent, y, result)


def add(lhs: Operand, rhs: Operand) -> Any:
    """Sum."""
    return binary("add", operators.add, lhs, rhs)


def subtract(lhs: Operand, rhs: Operand) -> Any:
    """Difference."""
    return binary("subtract", operators.subtract, lhs, rhs)


def multiply(lhs: Operand, rhs: Operand) -> Any:
    """Product."""
    return binary("multiply", operators.multiply, lhs, rhs)


def divide(lhs: Operand, rhs: Operand) -> Any:
    """Quotient; of integers, rounded towards zero."""
    return binary("divide", operators.div, lhs, rhs)


def floor_divide(lhs: Operand, rhs: Operand) -> Any:
    """Quotient rounded down."""
    return binary("floor_divide", operators.floordiv, lhs, rhs)


def mod(lhs: Operand, rhs: Operand) -> Any:
    """Remainder with the sign of the dividend."""
    return binary("mod", _truncated_remainder, lhs, rhs)


def floor_mod(lhs: Operand, rhs: Operand) -> Any:
    """Remainder with the sign of the divisor."""
    return binary("floor_mod", operators.floormod, lhs, rhs)


def maximum(lhs: Operand, rhs: Operand) -> Any:
    """The greater of two values; NaN where either is."""
    return binary("maximum", operators.maximum, lhs, rhs)


def minimum(lhs: Operand, rhs: Operand) -> Any:
    """The lesser of two values; NaN where either is."""
    return binary("minimum", operators.minimum, lhs, rhs)


def power(lhs: Operand, rhs: Operand) -> Any:
    """The first value to the power of the second; integers wrap around as their products do."""
    return binary("power", _power, lhs, rhs)


def left_shift(lhs: Operand, rhs: Operand) -> Any:
    """Bits moved up."""
    return binary("left_shift", operators.left_shift, lhs, rhs)


def right_shift(lhs: Operand, rhs: Operand) -> Any:
    """Bits moved down; signed numbers keep their sign."""
    return binary("right_shift", operators.right_shift, lhs, rhs)


def greater(lhs: Operand, rhs: Operand) -> Any:
    """True where the first value is greater."""
    return binary("greater", operators.greater, lhs, rhs)


def less(lhs: Operand, rhs: Operand) -> Any:
    """True where the first value is less."""
    return binary("less", operators.less, lhs, rhs)


def equal(lhs: Operand, rhs: Operand) -> Any:
    """True where both are equal."""
    return binary("equal", operators.equal, lhs, rhs)


def not_equal(lhs: Operand, rhs: Operand) -> Any:
    """True where both differ."""
    return binary("not_equal", operators.not_equal, lhs, rhs)


def greater_equal(lhs: Operand, rhs: Operand) -> Any:
    """True where the first value is not less."""
    return binary("greater_equal", operators.greater_equal, lhs, rhs)


def less_equal(lhs: Operand, rhs: Operand) -> Any:
    """True where the first value is not greater."""
    return binary("less_equal", operators.less_equal, lhs, rhs)


def logical_and(lhs: Operand, rhs: Operand) -> Any:
    """True where both are; numbers count as true where they are not zero."""
    return binary("logical_and", lambda a, b: operators.logical_and(_truth(a), _truth(b)), lhs, rhs)


def logical_or(lhs: Operand, rhs: Operand) -> Any:
    """True where one is."""
    return binary("logical_or", lambda a, b: operators.logical_or(_truth(a), _truth(b)), lhs, rhs)


def logical_xor(lhs: Operand, rhs: Operand) -> Any:
    """True where exactly one is."""
    return binary("logical_xor", lambda a, b: operators.not_equal(_truth(a), _truth(b)), lhs, rhs)


def bitwise_and(lhs: Operand, rhs: Operand) -> Any:
    """Bits set in both."""
    return binary("bitwise_and", operators.bitwise_and, lhs, rhs)


def bitwise_or(lhs: Operand, rhs: Operand) -> Any:
    """Bits set in one or both."""
    return binary("bitwise_or", operators.bitwise_or, lhs, rhs)


def bitwise_xor(lhs: Operand, rhs: Operand) -> Any:
    """Bits set in exactly one."""
    return binary("bitwise_xor", operators.bitwise_xor, lhs, rhs)


def logical_not(data: Tensor) -> Tensor:
    """True where the value is false, or zero."""
    return computed(
        data.shape, lambda *i: operators.logical_not(_truth(data(*i))), name="T_logical_not", tag=ELEMWISE
    )


def bitwise_not(data: Tensor) -> Tensor:
    """The bitwise complement."""
    return computed(
        data.shape, lambda *i: operators.bitwise_not(data(*i)), name="T_bitwise_not", tag=ELEMWISE
    )


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    tensors = list(xs)
    if not tensors:
        raise ExpressionError("elemwise_sum takes one tensor or more")
    for tensor in tensors[1:]:
        if len(tensor.shape) != len(tensors[0].shape) or any(
            known_different(one, other) for one, other in zip(tensor.shape, tensors[0].shape, strict=True)
        ):
            raise ExpressionError(
                f"elemwise_sum: shapes {shape_text(tensors[0].shape)} and {shape_text(tensor.shape)} differ"
            )

    def element(*i: PrimExpr) -> PrimExpr:
        total = tensors[0](*i)
        for tensor in tensors[1:]:
            total = total + tensor(*i)
        return total

    return computed(tensors[0].shape, element, name="T_elemwise_sum", tag=ELEMWISE)
