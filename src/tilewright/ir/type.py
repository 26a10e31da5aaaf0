"""Types: of variables at the loop level, and of functions, references and type variables at the graph level.

Types are equal by value, but for type variables, which are equal only to themselves; those that a function type
introduces may have any name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final

from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Node, node
from tilewright.support.slot import Slot

VERSION_HEADER: Final = '#[version = "0.0.5"]'
"""The first line of the text form of graph-level programs."""


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

    @property
    def span(self) -> None:
        """None: types are values, which many places of a program share."""
        return None

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The type in the text form of graph-level programs, below its version."""
        return f"{VERSION_HEADER}\n{self!r}"

    def __repr__(self) -> str:
        return TYPE_TEXT.value(self)


TYPE_TEXT: Slot[Callable[[Type], str]] = Slot("the text of types")


@node
class PrimType(Type):
    """The type of a scalar or vector."""

    dtype: DataType

    def __init__(self, dtype: str) -> None:
        self.dtype = DataType(dtype)


@node
class PointerType(Type):
    """A pointer to elements of a type, in a storage scope ("shared", "local", ...; "" and "global" are the same)."""

    element_type: Type
    storage_scope: str = ""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PointerType)
            and self.element_type == other.element_type
            and (self.storage_scope or "global") == (other.storage_scope or "global")
        )

    def __hash__(self) -> int:
        return hash((PointerType, self.element_type, self.storage_scope or "global"))


@node
class TupleType(Type):
    """A tuple of types; the empty one is void."""

    fields: tuple[Type, ...]

    def __init__(self, fields: tuple[Type, ...] | list[Type]) -> None:
        self.fields = tuple(fields)


VOID = TupleType(())


@node
class TypeCall(Type):
    """The type constructor ``func`` applied to ``args``."""

    func: Type
    args: tuple[Type, ...]

    def __init__(self, func: Type, args: Sequence[Type]) -> None:
        self.func = func
        self.args = tuple(args)


class _TypeName(Type):
    """What stands for a type; equal only to itself."""

    __slots__ = ()

    def __call__(self, *args: Type) -> Type:
        return TypeCall(self, args)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)


@node
class TypeVar(_TypeName):
    """A parameter of a generic function or type; equal only to itself."""

    name_hint: str
    kind: TypeKind

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.Type) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a dimension."""
    return TypeVar(name, TypeKind.ShapeVar)


@node
class GlobalTypeVar(_TypeName):
    """The name of a type defined in a module; equal only to itself."""

    name_hint: str
    kind: TypeKind

    def __init__(self, name_hint: str, kind: TypeKind | int = TypeKind.AdtHandle) -> None:
        self.name_hint = name_hint
        self.kind = TypeKind(kind)


STORAGE: Final = GlobalTypeVar("Storage")
"""The name of the type of memory that programs allocate explicitly (``core.rly`` of the standard library)."""


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

    def __eq__(self, other: object) -> bool:
        """Equal up to the names of the type parameters: ``fn[a](a) -> a`` is ``fn[b](b) -> b``."""
        return _equal_renamed(self, other, {})

    def __hash__(self) -> int:
        if not self.type_params:
            return Type.__hash__(self)
        return hash((FuncType, len(self.type_params), len(self.arg_types)))


def _equal_renamed(first: Any, second: Any, renamed: dict[TypeVar, TypeVar]) -> bool:
    """Equality where the type variables of one side stand for those of the other."""
    if isinstance(first, TypeVar):
        return renamed.get(first, first) is second
    if isinstance(first, tuple):
        return (
            isinstance(second, tuple)
            and len(first) == len(second)
            and all(_equal_renamed(one, other, renamed) for one, other in zip(first, second, strict=True))
        )
    if not isinstance(first, Type) or isinstance(first, (GlobalTypeVar, IncompleteType)):
        return bool(first == second)
    if type(first) is not type(second):
        return False
    if isinstance(first, FuncType) and isinstance(second, FuncType):
        if [each.kind for each in first.type_params] != [each.kind for each in second.type_params]:
            return False
        renamed = {**renamed, **dict(zip(first.type_params, second.type_params, strict=True))}
    return all(
        _equal_renamed(getattr(first, name), getattr(second, name), renamed) for name in first.field_names
    )


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
