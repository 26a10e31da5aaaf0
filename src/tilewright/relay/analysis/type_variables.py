"""The bound and free type variables of an expression or a type."""

from __future__ import annotations

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.type import FuncType, Type, TypeVar
from tilewright.relay.adt import Clause, bound_variables
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.function import Function
from tilewright.relay.type_functor import TypeVisitor
from tilewright.support.node import Node
from tilewright.support.recursion import with_recursion_room


class _TypeVariables(TypeVisitor):
    """Collects the variables of types, those that a function type or a definition binds apart."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self.met: dict[TypeVar, None] = {}
        self.bound: dict[TypeVar, None] = {}

    def bind(self, variable: TypeVar) -> None:
        """A binding, which is an occurrence too."""
        self.bound[variable] = None
        self.met[variable] = None

    def visit_type_var(self, tv: TypeVar) -> None:
        self.met[tv] = None

    def visit_func_type(self, ft: FuncType) -> None:
        for parameter in ft.type_params:
            self.bind(parameter)
        super().visit_func_type(ft)

    def visit_type_data(self, td: TypeData) -> None:
        for variable in td.type_vars:
            self.bind(variable)
        super().visit_type_data(td)

    def constructor(self, constructor: Constructor) -> None:
        """The definition to which a constructor belongs binds the variables of its inputs."""
        definition = self.mod.type_definitions.get(constructor.belong_to) if self.mod is not None else None
        if definition is not None:
            for variable in definition.type_vars:
                self.bind(variable)
        for given in constructor.inputs:
            self.visit(given)

    def expression(self, root: Node) -> None:
        """All types that occur in an expression."""
        seen: set[Node] = set()
        pending: list[Node] = [root]
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                self._types_at(current)
                pending.extend(reversed(current.children()))

    def _types_at(self, current: Node) -> None:
        types: list[Type | None] = []
        if isinstance(current, Var):
            types.append(current.type_annotation)
        elif isinstance(current, Let):
            types.append(current.var.type_annotation)
        elif isinstance(current, Clause):
            types += [variable.type_annotation for variable in bound_variables(current.lhs)]
        elif isinstance(current, Call):
            types += current.type_args
        elif isinstance(current, Constructor):
            self.constructor(current)
        elif isinstance(current, Function):
            for parameter in current.type_params:
                self.bind(parameter)
            types += [variable.type_annotation for variable in current.params]
            types.append(current.ret_type)
        for typ in types:
            if typ is not None:
                self.visit(typ)


@with_recursion_room
def _collect(expr: RelayExpr | Type, mod: IRModule | None) -> _TypeVariables:
    found = _TypeVariables(mod)
    if isinstance(expr, Type):
        found.visit(expr)
    else:
        found.expression(expr)
    return found


def free_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that no function, function type or definition within binds."""
    found = _collect(expr, mod)
    return [variable for variable in found.met if variable not in found.bound]


def bound_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that functions, function types and definitions bind."""
    return list(_collect(expr, mod).bound)


def all_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """All type variables."""
    return list(_collect(expr, mod).met)
