"""Tensors filled with a value, and sums of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor
from tilewright.topi.broadcast_shape import as_extents, known_different, shape_text
from tilewright.topi.computed import computed
from tilewright.topi.tag import ELEMWISE


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


def full(shape: ExprLike | Sequence[ExprLike], dtype: str, fill_value: Any) -> Tensor:
    """A tensor of one value: a number, or a tensor of one element."""

    def element(*_: PrimExpr) -> PrimExpr:
        if isinstance(fill_value, Tensor):
            return operators.cast(dtype, fill_value(*[0] * len(fill_value.shape)))
        if isinstance(fill_value, (bool, int, float)):
            return operators.const(fill_value, dtype)
        return operators.cast(dtype, fill_value)

    return computed(as_extents(shape), element, name="T_full", tag=ELEMWISE)


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """A tensor of the shape and type of another, of one value."""
    return full(x.shape, x.dtype, fill_value)
