"""Unification: finding the type of each ``IncompleteType`` by making types equal.

Dimensions: a constant unifies with itself and with an unknown one (``Any``); a symbolic one with itself, with an
unknown one, and with a constant, which is then its value. Type variables unify only with themselves: a generic function
gets fresh incomplete types in their place wherever it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.diagnostics import Diagnostic, DiagnosticLevel
from tilewright.ir.expr import Any, IntImm, PrimExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tilewright.support.errors import DiagnosticError
from tilewright.support.span import Span


class TypeInferenceError(DiagnosticError, TypeError):
    """A program has no type; shows the place, the types and the rule that they break."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(Diagnostic(DiagnosticLevel.ERROR, span, message).text(), span=None)
        self.reason = message
        self.place = span


class Mismatch(Exception):
    """Two types cannot be made equal, and why."""


class Solver:
    """The solver's knowledge about incomplete types."""

    def __init__(self) -> None:
        self.bound: dict[IncompleteType, Type] = {}
        self.version = 0
        """Counts the bindings, so that a caller can tell whether there was progress."""
        self._settled: dict[int, Type] = {}

    def shallow(self, given: Type) -> Type:
        """The type itself, or what an incomplete one stands for so far."""
        while isinstance(given, IncompleteType):
            found = self.bound.get(given)
            if found is None:
                return given
            given = found
        return given

    def resolve(self, given: Type) -> Type:
        """The type with everything known filled in."""
        given = self.shallow(given)
        if self._is_settled(given):
            return given
        made = self._resolved(given)
        if all(self._is_settled(part) for part in _parts(made)) and not isinstance(made, IncompleteType):
            self._settled[id(made)] = made
        return made

    def _is_settled(self, given: Type) -> bool:
        """True for types in which nothing can be filled in any more, as far as that has been noticed: a type within
        types within types is looked through once."""
        return id(given) in self._settled or isinstance(given, (TensorType, TypeVar, GlobalTypeVar))

    def _resolved(self, given: Type) -> Type:
        if isinstance(given, TupleType):
            fields = [self.resolve(field) for field in given.fields]
            return given if _same(fields, given.fields) else TupleType(fields)
        if isinstance(given, FuncType):
            arguments = [self.resolve(argument) for argument in given.arg_types]
            result = self.resolve(given.ret_type)
            if result is given.ret_type and _same(arguments, given.arg_types):
                return given
            return FuncType(arguments, result, given.type_params, given.type_constraints)
        if isinstance(given, RelayRefType):
            value = self.resolve(given.value)
            return given if value is given.value else RelayRefType(value)
        if isinstance(given, TypeCall):
            arguments = [self.resolve(argument) for argument in given.args]
            return given if _same(arguments, given.args) else TypeCall(given.func, arguments)
        return given

    def is_complete(self, given: Type) -> bool:
        """True if nothing within the type is left to find."""
        given = self.shallow(given)
        if isinstance(given, IncompleteType):
            return False
        return self._is_settled(given) or all(self.is_complete(part) for part in _parts(given))

    def unify(self, first: Type, second: Type) -> Type:
        """Make two types equal; gives the one that they then are. ``Mismatch`` where they cannot be."""
        first, second = self.shallow(first), self.shallow(second)
        if first is second:
            return first
        if isinstance(first, IncompleteType):
            return self._bind(first, second)
        if isinstance(second, IncompleteType):
            return self._bind(second, first)
        first, second = _applied(first), _applied(second)
        if type(first) is not type(second):
            raise Mismatch(f"{first} is not {second}")
        if isinstance(first, TensorType) and isinstance(second, TensorType):
            return self._unify_tensors(first, second)
        if isinstance(first, TupleType) and isinstance(second, TupleType):
            return TupleType(self._unify_all(first.fields, second.fields, f"{first} is not {second}"))
        if isinstance(first, FuncType) and isinstance(second, FuncType):
            return self._unify_functions(first, second)
        if isinstance(first, RelayRefType) and isinstance(second, RelayRefType):
            return RelayRefType(self.unify(first.value, second.value))
        if isinstance(first, TypeCall) and isinstance(second, TypeCall):
            if first.func is not second.func:
                raise Mismatch(f"{first} is not {second}")
            return TypeCall(first.func, self._unify_all(first.args, second.args, f"{first} is not {second}"))
        if first == second:
            return first
        raise Mismatch(f"{first} is not {second}")

    def _bind(self, incomplete: IncompleteType, value: Type) -> Type:
        if self._occurs(incomplete, value):
            raise Mismatch(f"a type would have to contain itself: {self.resolve(value)}")
        self.bound[incomplete] = value
        self.version += 1
        return value

    def _occurs(self, incomplete: IncompleteType, within: Type) -> bool:
        within = self.shallow(within)
        return within is incomplete or any(self._occurs(incomplete, part) for part in _parts(within))

    def _unify_all(self, first: Sequence[Type], second: Sequence[Type], message: str) -> list[Type]:
        if len(first) != len(second):
            raise Mismatch(f"{message}: one has {len(first)} parts, the other {len(second)}")
        return [self.unify(one, other) for one, other in zip(first, second, strict=True)]

    def _unify_functions(self, first: FuncType, second: FuncType) -> Type:
        if len(first.type_params) != len(second.type_params):
            # The more general function is used at the types that fit the other, which stays as generic as it is.
            if len(first.type_params) < len(second.type_params):
                first, second = second, first
            arguments, result = self._unify_signatures(_used_once(first), second)
            return FuncType(arguments, result, second.type_params, second.type_constraints)
        if first.type_params:
            renamed = substitute_types(
                second, dict(zip(second.type_params, first.type_params, strict=True)), strip=True
            )
            assert isinstance(renamed, FuncType)
            second = renamed
        arguments, result = self._unify_signatures(first, second)
        return FuncType(arguments, result, first.type_params, first.type_constraints)

    def _unify_signatures(self, first: FuncType, second: FuncType) -> tuple[list[Type], Type]:
        arguments = self._unify_all(first.arg_types, second.arg_types, f"{first} is not {second}")
        return arguments, self.unify(first.ret_type, second.ret_type)

    def _unify_tensors(self, first: TensorType, second: TensorType) -> TensorType:
        if first == second:
            return first
        if first.dtype is not second.dtype:
            raise Mismatch(f"{first} is not {second}: the element types differ")
        if len(first.shape) != len(second.shape):
            raise Mismatch(f"{first} is not {second}: the numbers of dimensions differ")
        shape = []
        for position, (one, other) in enumerate(zip(first.shape, second.shape, strict=True)):
            found = _unify_dimensions(one, other)
            if found is None:
                raise Mismatch(
                    f"{first} is not {second}: dimension {position} is {one} in one, {other} in the other"
                )
            shape.append(found)
        return TensorType(shape, first.dtype)


def _applied(given: Type) -> Type:
    """A data type without parameters may be written with or without empty brackets."""
    return TypeCall(given, ()) if isinstance(given, GlobalTypeVar) else given


def _used_once(given: FuncType) -> FuncType:
    """The type of one use of a function: types to find stand for its type parameters."""
    if not given.type_params:
        return given
    fresh: dict[TypeVar, Type] = {parameter: IncompleteType() for parameter in given.type_params}
    made = substitute_types(given, fresh, strip=True)
    assert isinstance(made, FuncType)
    return made


def _unify_dimensions(first: PrimExpr, second: PrimExpr) -> PrimExpr | None:
    """The dimension that both are; None if they differ."""
    if isinstance(first, Any):
        return first
    if isinstance(second, Any):
        return second
    if isinstance(first, IntImm) and isinstance(second, IntImm):
        return first if first.value == second.value else None
    if isinstance(first, IntImm) or isinstance(second, IntImm):
        return first if isinstance(first, IntImm) else second
    same = first is second or Analyzer().can_prove(operators.equal(first, second))
    return first if same else Any()


def _parts(given: Type) -> tuple[Type, ...]:
    if isinstance(given, TupleType):
        return given.fields
    if isinstance(given, FuncType):
        return (*given.arg_types, given.ret_type)
    if isinstance(given, RelayRefType):
        return (given.value,)
    if isinstance(given, TypeCall):
        return given.args
    return ()


def _same(new: Sequence[Type], old: Sequence[Type]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def substitute_types(given: Type, values: Mapping[TypeVar, Type], strip: bool = False) -> Type:
    """The type with type variables replaced; with ``strip`` the outermost function is generic in them no more."""
    if isinstance(given, TypeVar):
        return values.get(given, given)
    if isinstance(given, TupleType):
        return TupleType([substitute_types(field, values) for field in given.fields])
    if isinstance(given, FuncType):
        arguments = [substitute_types(argument, values) for argument in given.arg_types]
        result = substitute_types(given.ret_type, values)
        params = () if strip else given.type_params
        return FuncType(arguments, result, params, given.type_constraints)
    if isinstance(given, RelayRefType):
        return RelayRefType(substitute_types(given.value, values))
    if isinstance(given, TypeCall):
        return TypeCall(given.func, [substitute_types(argument, values) for argument in given.args])
    return given
