"""Functions of scalars on the elements of tensors.

Tensors of different shapes meet as ``te.broadcasting`` says. Scalars alone give an expression, not a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr
from tilewright.te.broadcast_shape import broadcast_index, broadcast_shapes
from tilewright.te.operation import compute
from tilewright.te.tag import BROADCAST, ELEMWISE
from tilewright.te.tensor import Tensor

Operand = Tensor | ExprLike
Scalar = Callable[[PrimExpr, PrimExpr], PrimExpr]


def unary(name: str, function: Callable[[PrimExpr], PrimExpr], x: Operand) -> Any:
    """A function of a scalar on every element of a tensor; of a scalar, the expression."""
    if not isinstance(x, Tensor):
        return function(operators.as_expr(x))
    return compute(x.shape, lambda *i: function(_element(x, i)), name=f"T_{name}", tag=ELEMWISE)


def _element(tensor: Tensor, index: Sequence[PrimExpr]) -> PrimExpr:
    """An element; arithmetic that a tensor without dimensions stands for is computed in place."""
    return tensor(*index) if tensor.shape else tensor.asobject()


def binary(name: str, function: Scalar, lhs: Any, rhs: Any) -> Any:
    """A function of two scalars on tensors or scalars; two scalars give an expression."""
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        return function(operators.as_expr(lhs), operators.as_expr(rhs))
    if not isinstance(rhs, Tensor):
        right = operators.as_expr(rhs)
        return compute(
            lhs.shape, lambda *i: function(_element(lhs, i), right), name=f"T_{name}", tag=ELEMWISE
        )
    if not isinstance(lhs, Tensor):
        left = operators.as_expr(lhs)
        return compute(rhs.shape, lambda *i: function(left, _element(rhs, i)), name=f"T_{name}", tag=ELEMWISE)
    shape = broadcast_shapes(name, lhs.shape, rhs.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        first = _element(lhs, broadcast_index(i, lhs.shape, shape))
        return function(first, _element(rhs, broadcast_index(i, rhs.shape, shape)))

    return compute(shape, element, name=f"T_{name}", tag=BROADCAST)
