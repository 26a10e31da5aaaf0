"""Types of variables at the loop level. Graph-level types join them with Relay."""

from __future__ import annotations

from enum import IntEnum

from tilewright.support.dtype import DataType
from tilewright.support.node import Node, node


class TypeKind(IntEnum):
    """The kind of a type, for type variables."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """Base of all types; types are equal by value."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self.field_names
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.field_names)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(getattr(self, name)) for name in self.field_names)})"


@node
class PrimType(Type):
    """The type of a scalar or vector."""

    dtype: DataType

    def __init__(self, dtype: str) -> None:
        self.dtype = DataType(dtype)


@node
class PointerType(Type):
    """A pointer to elements of a type, in a storage scope ("" or "global", "shared", "local", ...)."""

    element_type: Type
    storage_scope: str = ""


@node
class TupleType(Type):
    """A tuple of types; the empty one is void."""

    fields: tuple[Type, ...]

    def __init__(self, fields: tuple[Type, ...] | list[Type]) -> None:
        self.fields = tuple(fields)


VOID = TupleType(())
