"""Visiting and rewriting types: a subclass defines ``visit_<type>`` for the types that it handles."""

from __future__ import annotations

from typing import Any

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.functor import Functor
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
from tilewright.ir.type_relation import TypeRelation


class TypeFunctor(Functor):
    """Dispatch by the class of a type. What a subclass has no method for goes to ``visit_default``: an error here."""

    def visit(self, typ: Type) -> Any:
        """The result for a type."""
        handler = self._handlers.get(type(typ)) or self._handler(type(typ))
        return handler(self, typ)

    def visit_default(self, typ: Any) -> Any:
        """Called for nodes without a method."""
        raise NotImplementedError(f"{type(self).__name__} has no visit_{type(typ).node_kind}")

    def visit_relay_ref_type(self, rt: RelayRefType) -> Any:
        """References are visited under the name that users know."""
        return self.visit_ref_type(rt)

    def visit_ref_type(self, _: RelayRefType) -> Any:
        """A reference."""
        return self.visit_default(_)

    def visit_type_var(self, _: TypeVar) -> Any:
        """A type variable."""
        return self.visit_default(_)

    def visit_incomplete_type(self, _: IncompleteType) -> Any:
        """A type that is not known yet."""
        return self.visit_default(_)

    def visit_tensor_type(self, _: TensorType) -> Any:
        """A tensor."""
        return self.visit_default(_)

    def visit_func_type(self, _: FuncType) -> Any:
        """A function."""
        return self.visit_default(_)

    def visit_tuple_type(self, _: TupleType) -> Any:
        """A tuple."""
        return self.visit_default(_)

    def visit_type_relation(self, _: TypeRelation) -> Any:
        """A relation between types."""
        return self.visit_default(_)

    def visit_global_type_var(self, _: GlobalTypeVar) -> Any:
        """A type of the module."""
        return self.visit_default(_)

    def visit_type_call(self, _: TypeCall) -> Any:
        """A type with its arguments."""
        return self.visit_default(_)

    def visit_type_data(self, _: TypeData) -> Any:
        """The definition of a data type."""
        return self.visit_default(_)


class TypeVisitor(TypeFunctor):
    """Looks at a type and all types in it."""

    def visit_default(self, typ: Any) -> None:
        """Other types have nothing within."""

    def visit_type_var(self, tv: TypeVar) -> None:
        """A type variable."""

    def visit_incomplete_type(self, it: IncompleteType) -> None:
        """A type that is not known yet."""

    def visit_tensor_type(self, tt: TensorType) -> None:
        """A tensor."""

    def visit_func_type(self, ft: FuncType) -> None:
        """Arguments, result, parameters, constraints."""
        for part in (*ft.arg_types, ft.ret_type, *ft.type_params, *ft.type_constraints):
            self.visit(part)

    def visit_tuple_type(self, tt: TupleType) -> None:
        """The fields."""
        for field in tt.fields:
            self.visit(field)

    def visit_type_relation(self, tr: TypeRelation) -> None:
        """The types between which it holds."""
        for argument in tr.args:
            self.visit(argument)

    def visit_ref_type(self, rt: RelayRefType) -> None:
        """What the reference holds."""
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        """A type of the module."""

    def visit_type_call(self, tc: TypeCall) -> None:
        """The constructor, then its arguments."""
        self.visit(tc.func)
        for argument in tc.args:
            self.visit(argument)

    def visit_type_data(self, td: TypeData) -> None:
        """The name, the parameters, and what the constructors take."""
        self.visit(td.header)
        for variable in td.type_vars:
            self.visit(variable)
        for constructor in td.constructors:
            self.visit(constructor.belong_to)
            for given in constructor.inputs:
                self.visit(given)


class TypeMutator(TypeFunctor):
    """Rewrites bottom-up; a type whose parts did not change stays the same object."""

    def visit_default(self, typ: Any) -> Any:
        """Other types stay."""
        return typ

    def visit_type_var(self, tv: TypeVar) -> Type:
        """Variables stay."""
        return tv

    def visit_incomplete_type(self, it: IncompleteType) -> Type:
        """What is not known stays so."""
        return it

    def visit_tensor_type(self, tt: TensorType) -> Type:
        """Tensors stay."""
        return tt

    def visit_func_type(self, ft: FuncType) -> Type:
        """New arguments, result, parameters and constraints."""
        arguments = self._all(ft.arg_types)
        result = self.visit(ft.ret_type)
        parameters = self._all(ft.type_params)
        constraints = self._all(ft.type_constraints)
        if (
            arguments is ft.arg_types
            and result is ft.ret_type
            and parameters is ft.type_params
            and constraints is ft.type_constraints
        ):
            return ft
        return FuncType(arguments, result, parameters, constraints)

    def visit_tuple_type(self, tt: TupleType) -> Type:
        """New fields."""
        fields = self._all(tt.fields)
        return tt if fields is tt.fields else TupleType(fields)

    def visit_type_relation(self, tr: TypeRelation) -> Type:
        """New types between which it holds."""
        args = self._all(tr.args)
        return tr if args is tr.args else TypeRelation(tr.func, args, tr.num_inputs, tr.attrs)

    def visit_ref_type(self, rt: RelayRefType) -> Type:
        """A reference to a new type."""
        value = self.visit(rt.value)
        return rt if value is rt.value else RelayRefType(value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Type:
        """Names stay."""
        return gtv

    def visit_type_call(self, tc: TypeCall) -> Type:
        """A new constructor and new arguments."""
        function = self.visit(tc.func)
        args = self._all(tc.args)
        return tc if function is tc.func and args is tc.args else TypeCall(function, args)

    def visit_type_data(self, td: TypeData) -> Type:
        """New parameters and constructors; their tags stay."""
        header = self.visit(td.header)
        variables = self._all(td.type_vars)
        constructors = [self._constructor(one) for one in td.constructors]
        same = all(new is old for new, old in zip(constructors, td.constructors, strict=True))
        if header is td.header and variables is td.type_vars and same:
            return td
        return TypeData(header, variables, constructors)

    def _constructor(self, constructor: Constructor) -> Constructor:
        inputs = self._all(constructor.inputs)
        owner = self.visit(constructor.belong_to)
        if inputs is constructor.inputs and owner is constructor.belong_to:
            return constructor
        return constructor.replace(inputs=inputs, belong_to=owner)

    def _all(self, types: tuple[Any, ...]) -> tuple[Any, ...]:
        """Each of these rewritten; the same tuple if none changed."""
        made = tuple([self.visit(typ) for typ in types])
        return types if all(new is old for new, old in zip(made, types, strict=True)) else made
