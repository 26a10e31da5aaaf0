"""Tensors made from numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents
from tilewright.te.tensor import Tensor
from tilewright.tir import op
from tilewright.topi.computed import computed
from tilewright.topi.tag import ELEMWISE, INJECTIVE


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """``start``, ``start + step``, ... up to ``stop``, which is left out; with one number, from 0 up to it."""
    if stop is None:
        start, stop = 0, start
    first, last, distance = (_scalar(value) for value in (start, stop, step))
    kind = DataType(dtype)

    def element(i: PrimExpr) -> PrimExpr:
        return operators.cast(kind, first) + operators.cast(kind, distance) * operators.cast(kind, i)

    return computed((_count(first, last, distance),), element, name="T_arange", tag=INJECTIVE)


def _scalar(value: Any) -> PrimExpr:
    return value(*[0] * len(value.shape)) if isinstance(value, Tensor) else operators.as_expr(value)


def _count(start: PrimExpr, stop: PrimExpr, step: PrimExpr) -> PrimExpr:
    """How many numbers there are: the distance over the step, rounded up, and never negative."""
    if isinstance(step, (IntImm, FloatImm)) and step.value == 0:
        raise ExpressionError("arange: the step is zero")
    constants = [value.value for value in (start, stop, step) if isinstance(value, (IntImm, FloatImm))]
    if len(constants) == 3:
        first, last, distance = constants
        if all(isinstance(value, int) for value in constants):
            return operators.const(max(0, -((first - last) // distance)))
        return operators.const(max(0, math.ceil((last - first) / distance)))
    if all(value.dtype.is_integral for value in (start, stop, step)):
        # -((start - stop) // step) is the quotient rounded up, whichever way the numbers run.
        negated: ExprLike = operators.floordiv(start - stop, step)
        return operators.maximum(operators.subtract(0, negated), 0)
    quotient = (operators.cast("float64", stop) - operators.cast("float64", start)) / operators.cast(
        "float64", step
    )
    return operators.maximum(operators.cast("int32", op.ceil(quotient)), 0)


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
