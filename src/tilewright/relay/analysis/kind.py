"""Kind checking of types: what a tuple, a function or a type call may consist of."""

from __future__ import annotations

from tilewright.ir.adt import TypeData
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type_relation import TypeRelation
from tilewright.relay.type_functor import TypeFunctor
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import with_recursion_room


class KindError(TilewrightError):
    """A type is made of types that cannot stand where they do."""


class _KindChecker(TypeFunctor):
    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod

    def need(self, typ: Type, kind: TypeKind, what: str) -> None:
        """An error unless the type has this kind."""
        found = self.visit(typ)
        if found is not kind:
            raise KindError(f"{what} has kind {kind.name}, but {typ} has kind {found.name}")

    def visit_type_var(self, tv: TypeVar) -> TypeKind:
        return tv.kind

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> TypeKind:
        return gtv.kind

    def visit_incomplete_type(self, it: IncompleteType) -> TypeKind:
        return it.kind

    def visit_tensor_type(self, tt: TensorType) -> TypeKind:
        return TypeKind.Type

    def visit_tuple_type(self, tt: TupleType) -> TypeKind:
        for field in tt.fields:
            self.need(field, TypeKind.Type, "a field of a tuple")
        return TypeKind.Type

    def visit_func_type(self, ft: FuncType) -> TypeKind:
        for argument in ft.arg_types:
            self.need(argument, TypeKind.Type, "an argument of a function")
        self.need(ft.ret_type, TypeKind.Type, "the result of a function")
        for constraint in ft.type_constraints:
            self.need(constraint, TypeKind.Constraint, "a constraint of a function")
        return TypeKind.Type

    def visit_ref_type(self, rt: RelayRefType) -> TypeKind:
        self.need(rt.value, TypeKind.Type, "what a reference holds")
        return TypeKind.Type

    def visit_type_relation(self, tr: TypeRelation) -> TypeKind:
        for argument in tr.args:
            self.need(argument, TypeKind.Type, "an argument of a type relation")
        return TypeKind.Constraint

    def visit_type_call(self, tc: TypeCall) -> TypeKind:
        if not isinstance(tc.func, GlobalTypeVar):
            raise KindError(f"only the name of a data type is applied to types, not {tc.func}")
        self.need(tc.func, TypeKind.AdtHandle, "what is applied to types")
        for argument in tc.args:
            self.need(argument, TypeKind.Type, f"an argument of {tc.func.name_hint}")
        if self.mod is not None:
            definition = self.mod[tc.func]
            if len(definition.type_vars) != len(tc.args):
                raise KindError(
                    f"{tc.func.name_hint} takes {len(definition.type_vars)} types, it is given {len(tc.args)}"
                )
        return TypeKind.Type

    def visit_type_data(self, td: TypeData) -> TypeKind:
        self.need(td.header, TypeKind.AdtHandle, "the name of a data type")
        for variable in td.type_vars:
            self.need(variable, TypeKind.Type, f"a parameter of {td.header.name_hint}")
        for constructor in td.constructors:
            if constructor.belong_to is not td.header:
                raise KindError(f"{constructor.name_hint} is not a constructor of {td.header.name_hint}")
            for given in constructor.inputs:
                self.need(given, TypeKind.Type, f"an argument of {constructor.name_hint}")
        return TypeKind.TypeData


@with_recursion_room
def check_kind(t: Type, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type; ``KindError`` if it is made of types that do not fit. The module gives the definitions of the
    data types that it names."""
    return _KindChecker(mod).visit(t)  # type: ignore[no-any-return]
