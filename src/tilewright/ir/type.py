"""Types: of variables at the loop level, and of functions, references and type variables at the graph level.

Types are equal by value, but for type variables, which are equal only to themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
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

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The type in the text form of graph-level programs, below its version."""
        return f"{TYPE_TEXT[1]}\n{TYPE_TEXT[0](self)}"

    def __repr__(self) -> str:
        return str(TYPE_TEXT[0](self))


TYPE_TEXT: list[Any] = []
"""What writes a type, and the first line of the text form; set by ``type_text``, above this file."""


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


def _call_type(function: Type, arguments: tuple[Type, ...]) -> Type:
    """A type constructor applied to types; the class is in ``type_relation``, above this file."""
    return TYPE_CALL_CLASS[0](function, arguments)  # type: ignore[no-any-return]


TYPE_CALL_CLASS: list[Any] = []


@node
class TypeVar(Type):
    """A parameter of a generic function or type; equal only to itself."""

    name_hint: str
    kind: TypeKind

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.Type) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)

    def __call__(self, *args: Type) -> Type:
        return _call_type(self, args)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)


@node
class GlobalTypeVar(Type):
    """The name of a type defined in a module; equal only to itself."""

    name_hint: str
    kind: TypeKind

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.AdtHandle) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)

    def __call__(self, *args: Type) -> Type:
        return _call_type(self, args)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)


class TypeConstraint(Type):
    """Base of conditions on the types of a function."""

    __slots__ = ()


@node
class FuncType(Type):
    """The type of a function, generic in ``type_params`` where ``type_constraints`` hold."""

    arg_types: tuple[Type, ...]
    ret_type: Type
    type_params: tuple[TypeVar, ...]
    type_constraints: tuple[TypeConstraint, ...]

    def __init__(
        self,
        arg_types: Sequence[Type],
        ret_type: Type,
        type_params: Sequence[TypeVar] | None = None,
        type_constraints: Sequence[TypeConstraint] | None = None,
    ) -> None:
        self.arg_types = tuple(arg_types)
        self.ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.type_constraints = tuple(type_constraints or ())
        for parameter in self.type_params:
            if not isinstance(parameter, TypeVar):
                raise ExpressionError(f"a type parameter is a TypeVar, not {parameter!r}")


@node
class IncompleteType(Type):
    """A type that inference has yet to find; equal only to itself."""

    kind: TypeKind

    def __init__(self, kind: TypeKind | int = TypeKind.Type) -> None:
        self.kind = TypeKind(kind)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)


@node
class RelayRefType(Type):
    """A mutable reference to a value."""

    value: Type
