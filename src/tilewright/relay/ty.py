"""The graph-level types, under TVM's names."""

from __future__ import annotations

from tilewright.ir.expr import Any
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeConstraint,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type import RelayRefType as RefType
from tilewright.ir.type_relation import TypeCall, TypeRelation

__all__ = [
    "Any",
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "RefType",
    "RelayRefType",
    "ShapeVar",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
]


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


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a dimension."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)
