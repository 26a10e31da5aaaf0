"""The type of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilewright.ir import operators
from tilewright.ir.dimension import constant_dimension, same_dimensions
from tilewright.ir.expr import Any, ExprLike, IntImm, PrimExpr
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Children, node


@lru_cache(maxsize=4096)
def _constant_extent(extent: int) -> PrimExpr:
    """The constant of a dimension. Types are made by the thousand and have few sizes between them."""
    return operators.const(extent)


@node
class TensorType(Type):
    """A tensor of elements of ``dtype``; a dimension is a constant, an expression, or ``Any`` where it is not known."""

    shape: Children[PrimExpr]
    dtype: DataType

    def __init__(self, shape: Sequence[ExprLike], dtype: str = "float32") -> None:
        self.shape = tuple(
            [
                _constant_extent(extent) if type(extent) is int else operators.as_expr(extent)
                for extent in shape
            ]
        )
        self.dtype = DataType(dtype)
        for extent in self.shape:
            if not extent.dtype.is_integral:
                raise ExpressionError(
                    f"a dimension of a tensor type is an integer, not {extent.dtype}: {extent}"
                )

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as Python integers; an error where a dimension is not constant."""
        extents: list[int] = []
        for extent in self.shape:
            if not isinstance(extent, IntImm):
                raise ExpressionError(f"the dimension {extent} of {self} is not a constant")
            extents.append(extent.value)
        return tuple(extents)

    def _dimension_keys(self) -> tuple[object, ...]:
        """The hash key of a shape: the values of constants, and the positions of the other dimensions."""
        return tuple(
            extent.value
            if isinstance(extent, IntImm)
            else Any
            if isinstance(extent, Any)
            else constant_dimension(extent)
            for extent in self.shape
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorType)
            and self.dtype is other.dtype
            and self._dimension_keys() == other._dimension_keys()
            and all(
                isinstance(mine, IntImm | Any) or same_dimensions(mine, theirs)
                for mine, theirs in zip(self.shape, other.shape, strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self._dimension_keys()))


def is_dynamic(tensor_type: Type) -> bool:
    """True if a dimension is not known, in the type or within it."""
    pending = [tensor_type]
    while pending:
        current = pending.pop()
        if isinstance(current, TensorType):
            if any(isinstance(extent, Any) for extent in current.shape):
                return True
        elif isinstance(current, TupleType):
            pending.extend(current.fields)
        elif isinstance(current, FuncType):
            pending.extend((*current.arg_types, current.ret_type))
    return False


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)
