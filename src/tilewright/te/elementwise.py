"""Functions of scalars on the elements of tensors.

Tensors of different shapes meet as ``te.broadcasting`` says. Without a tensor among the operands, the
result is an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr, SizeVar
from tilewright.ir.functor import free_vars
from tilewright.te.broadcast_shape import broadcast_index, broadcast_shapes
from tilewright.te.operation import compute
from tilewright.te.tag import BROADCAST, ELEMWISE
from tilewright.te.tensor import Tensor

Operand = Tensor | ExprLike
Scalar = Callable[[PrimExpr, PrimExpr], PrimExpr]


def unary(name: str, function: Callable[[PrimExpr], PrimExpr], x: Operand, in_place: bool = False) -> Any:
    """A function of a scalar on every element of a tensor; of a scalar, the expression."""
    if not isinstance(x, Tensor):
        return function(operators.as_expr(x))
    return compute(x.shape, lambda *i: function(_element(x, i, in_place)), name=f"T_{name}", tag=ELEMWISE)


def _element(tensor: Tensor, index: Sequence[PrimExpr], in_place: bool) -> PrimExpr:
    """An element; arithmetic that a tensor without dimensions stands for is computed in place where that is wanted, or
    where it depends on the axes of a computation around it."""
    if tensor.shape:
        return tensor(*index)
    element = tensor.asobject()
    if in_place or any(not isinstance(variable, SizeVar) for variable in free_vars(element)):
        return element
    return tensor()


def binary(name: str, function: Scalar, lhs: Any, rhs: Any, in_place: bool = False) -> Any:
    """A function of two scalars on tensors or scalars; two scalars give an expression.

    With ``in_place``, as Python's operators have it, arithmetic on tensors without dimensions is part of what it is
    used for; otherwise it is computed once.
    """
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        return function(operators.as_expr(lhs), operators.as_expr(rhs))
    if not isinstance(rhs, Tensor):
        right = operators.as_expr(rhs)
        return compute(
            lhs.shape, lambda *i: function(_element(lhs, i, in_place), right), name=f"T_{name}", tag=ELEMWISE
        )
    if not isinstance(lhs, Tensor):
        left = operators.as_expr(lhs)
        return compute(
            rhs.shape, lambda *i: function(left, _element(rhs, i, in_place)), name=f"T_{name}", tag=ELEMWISE
        )
    shape = broadcast_shapes(name, lhs.shape, rhs.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        first = _element(lhs, broadcast_index(i, lhs.shape, shape), in_place)
        return function(first, _element(rhs, broadcast_index(i, rhs.shape, shape), in_place))

    return compute(shape, element, name=f"T_{name}", tag=BROADCAST)
