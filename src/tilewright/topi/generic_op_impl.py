"""Arithmetic on whole tensors: ``a + b``, ``2 * a``, ``-a`` and ``a.astype(...)`` give tensors.

Tensors without dimensions stand for their element, as everywhere in tensor expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.expr import ExprOp
from tilewright.support.span import Span
from tilewright.te.tensor import Tensor
from tilewright.topi import broadcast, math


def _has_dimensions(value: Any) -> bool:
    return isinstance(value, Tensor) and len(value.shape) > 0


def _bind(method: str, function: Callable[[Any, Any], Any], turned: bool) -> None:
    """Make a binary operator of tensors."""
    plain = getattr(ExprOp, method)

    def operator(self: Tensor, other: Any) -> Any:
        if not _has_dimensions(self) and not _has_dimensions(other):
            return plain(self, other)
        return function(other, self) if turned else function(self, other)

    operator.__name__, operator.__doc__ = method, plain.__doc__
    setattr(Tensor, method, operator)


def _astype(self: Tensor, dtype: str, span: Span | None = None) -> Any:
    """The elements converted to another type: a tensor, or an expression where the tensor is a scalar."""
    return math.cast(self, dtype, span) if _has_dimensions(self) else ExprOp.astype(self, dtype, span)


def _negative(self: Tensor) -> Any:
    return math.negative(self) if _has_dimensions(self) else ExprOp.__neg__(self)


def bind_operators() -> None:
    """Give tensors their arithmetic; done once, when this package is imported."""
    for name, function in {
        "add": broadcast.add,
        "sub": broadcast.subtract,
        "mul": broadcast.multiply,
        "truediv": broadcast.divide,
    }.items():
        _bind(f"__{name}__", function, turned=False)
        _bind(f"__r{name}__", function, turned=True)
    # Assigned by name: the classes of tensors are closed to the type checker.
    setattr(Tensor, "__neg__", _negative)  # noqa: B010
    setattr(Tensor, "astype", _astype)  # noqa: B010
