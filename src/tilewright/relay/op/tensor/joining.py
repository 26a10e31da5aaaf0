"""Functions that TVM lists with the operators on tensors, but that are defined with those that move data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Call, Constant, Tuple
from tilewright.relay.op.calls import call
from tilewright.support.errors import ExpressionError


def _as_tuple(data: Any, name: str) -> RelayExpr:
    if isinstance(data, RelayExpr):
        return data
    fields = list(data)
    if not fields:
        raise ExpressionError(f"{name} takes one tensor or more")
    return Tuple(fields)


def concatenate(data: RelayExpr | Sequence[RelayExpr], axis: int) -> Call:
    """The tensors of a tuple one after the other along an axis."""
    return call("concatenate", _as_tuple(data, "concatenate"), axis=axis)


def stack(data: RelayExpr | Sequence[RelayExpr], axis: int) -> Call:
    """The tensors of a tuple one after the other along a new axis."""
    return call("stack", _as_tuple(data, "stack"), axis=axis)


def zeros(shape: Any, dtype: str) -> Call:
    """A tensor of zeros; the shape is given as numbers, or computed by the program."""
    return _of_one_value("zeros", shape, dtype)


def ones(shape: Any, dtype: str) -> Call:
    """A tensor of ones; the shape is given as numbers, or computed by the program."""
    return _of_one_value("ones", shape, dtype)


def _of_one_value(name: str, shape: Any, dtype: str) -> Call:
    if isinstance(shape, Constant):
        shape = shape.data.numpy().reshape(-1).tolist()
    if isinstance(shape, RelayExpr):
        return call(f"dyn.{name}", shape, dtype=dtype)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return call(name, shape=extents, dtype=dtype)
