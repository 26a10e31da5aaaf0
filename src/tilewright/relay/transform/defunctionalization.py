"""Defunctionalization: removes functions as values.

Every function value becomes a value of a data type: one data type per function type, with one constructor per function
of the program, which holds the captured variables. Calling such a value calls the ``apply`` function of its data type,
which matches on the value and runs the function's body. Generic functions are copied for the types that they are used
at. The result is a first-order program without closures.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import FuncType, GlobalTypeVar, IncompleteType, Type, TypeCall, TypeVar
from tilewright.relay.adt import Clause, Match, PatternConstructor, PatternVar
from tilewright.relay.analysis.variables import free_vars
from tilewright.relay.expr import Call, Let, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.infer.solver import Solver, substitute_types
from tilewright.relay.transform.to_a_normal_form import ToANormalFormExpr
from tilewright.relay.type_functor import TypeMutator, TypeVisitor
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room


class _HoldsFunctions(TypeVisitor):
    found = False

    def visit_func_type(self, ft: FuncType) -> None:
        self.found = True


def _holds_functions(kind: Type) -> bool:
    look = _HoldsFunctions()
    look.visit(kind)
    return look.found


@dataclass(eq=False)
class _FunctionData:
    """The data type of one type of functions, while it grows."""

    header: GlobalTypeVar
    apply: GlobalVar
    kind: FuncType
    value: Var
    params: list[Var]
    constructors: list[Constructor] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)

    def constructor(self, name: str, inputs: Sequence[Type]) -> Constructor:
        """A new constructor; its tag differs from those of other types."""
        place = (zlib.crc32(self.header.name_hint.encode()) & 0xFFFFFF) << 8
        made = Constructor(name, inputs, self.header, place | len(self.constructors))
        self.constructors.append(made)
        return made


class _Types(TypeMutator):
    """Data types in place of types of functions."""

    def __init__(self, program: _Program) -> None:
        self.program = program

    def visit_func_type(self, ft: FuncType) -> Type:
        return TypeCall(self.program.data(ft).header, [])

    def visit_type_call(self, tc: TypeCall) -> Type:
        assert isinstance(tc.func, GlobalTypeVar)
        definition = self.program.mod.type_definitions.get(tc.func)
        if definition is not None:
            for constructor in definition.constructors:
                if any(_holds_functions(given) for given in constructor.inputs):
                    raise TilewrightError(
                        f"data type {definition.header.name_hint} holds functions in constructor "
                        f"{constructor.name_hint}; make the type generic in them to defunctionalize the program"
                    )
        return super().visit_type_call(tc)


class _Program:
    """The program being built: functions and data types of the module."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.types = _Types(self)
        self.made: dict[str, _FunctionData] = {}
        self.copies: dict[tuple[str, ...], GlobalVar] = {}
        self.named: dict[tuple[str, str], Constructor] = {}

    def fresh(self, name: str) -> GlobalVar:
        """A variable for a new function."""
        taken = {one.name_hint for one in self.mod.functions} | {
            one.name_hint for one in self.copies.values()
        }
        number = 0
        while f"{name}_{number}" in taken:
            number += 1
        return GlobalVar(f"{name}_{number}")

    def data(self, kind: FuncType) -> _FunctionData:
        """The data type for functions of a type."""
        if kind.type_params:
            raise TilewrightError(f"a generic function of type {kind} is used as a value; annotate its types")
        key = str(kind)
        found = self.made.get(key)
        if found is None:
            names = {one.name_hint for one in self.mod.type_definitions}
            number = len(self.made)
            while f"Function{number}" in names:
                number += 1
            header = GlobalTypeVar(f"Function{number}")
            found = self.made[key] = _FunctionData(header, GlobalVar(f"apply{number}"), kind, Var("f"), [])
            found.value = Var("function", TypeCall(header, []))
            found.params = [
                Var(f"x{place}", self.types.visit(one)) for place, one in enumerate(kind.arg_types)
            ]
        return found

    def finish(self) -> None:
        """Put the data types and their apply functions into the module."""
        for data in self.made.values():
            self.mod[data.header] = TypeData(data.header, [], data.constructors)
            body = Match(data.value, data.clauses)
            result = self.types.visit(data.kind.ret_type)
            self.mod[data.apply] = Function([data.value, *data.params], body, result)

    def copy_of(self, name: GlobalVar, values: Mapping[TypeVar, Type]) -> GlobalVar:
        """The first-order form of a function of the module, at given types."""
        function = self.mod[name.name_hint]
        if not isinstance(function, Function):
            return name
        key = (name.name_hint, *[str(values[one]) for one in function.type_params])
        if key not in self.copies:
            self.copies[key] = self.fresh(name.name_hint)
            typed = _prepared(_Specialise(values).visit(function), self.mod)
            self.mod[self.copies[key]] = _Scope(self).function(typed)
        return self.copies[key]


class _Specialise(ExprMutator):
    """A copy of a generic function at given types, with fresh variables."""

    def __init__(self, values: Mapping[TypeVar, Type]) -> None:
        super().__init__()
        self.values = values

    def visit_var(self, var: Var) -> RelayExpr:
        kind = var.type_annotation
        return Var(var.name_hint, None if kind is None else substitute_types(kind, self.values), var.span)

    def visit_call(self, call: Call) -> RelayExpr:
        # Calls of generic constructors have the types that their contexts require: nothing is shared with the original.
        types = [substitute_types(one, self.values) for one in call.type_args]
        return call.map_children(self.visit).replace(type_args=tuple(types))

    def visit_function(self, fn: Function) -> RelayExpr:
        made = super().visit_function(fn)
        assert isinstance(made, Function)
        result = None if fn.ret_type is None else substitute_types(fn.ret_type, self.values)
        left = [one for one in fn.type_params if one not in self.values]
        return made.replace(ret_type=result, type_params=tuple(left))


def _prepared(function: Any, mod: IRModule) -> Function:
    """In A-normal form, with types: functions are then values of lets, and arguments are names."""
    made = infer_expr(ToANormalFormExpr(infer_expr(function, mod)), mod)
    assert isinstance(made, Function)
    return made


class _Scope(ExprMutator):
    """Rewrites the body of one function; what it uses from around it was given first-order forms."""

    def __init__(self, program: _Program) -> None:
        super().__init__()
        self.program = program

    def function(self, fn: Function) -> Function:
        """A function of the module."""
        params = [self.visit(parameter) for parameter in fn.params]
        result = self.program.types.visit(fn.checked_type.ret_type)
        return Function(params, self.visit(fn.body), result, span=fn.span)

    def visit_var(self, var: Var) -> RelayExpr:
        return Var(var.name_hint, self.program.types.visit(var.checked_type), var.span)

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[RelayExpr, RelayExpr]] = []
        current: RelayExpr = let
        while isinstance(current, Let):
            value: Any = current.value
            if isinstance(value, Function) and not value.is_primitive:
                made = self.closure(current.var, value)
            else:
                made = self.argument(value, current.var.checked_type)
            chain.append((self.visit(current.var), made))
            current = current.body
        body: RelayExpr = self.visit(current)
        for variable, bound in reversed(chain):
            assert isinstance(variable, Var)
            body = Let(variable, bound, body, span=bound.span)
        return body

    def closure(self, own: Var, fn: Function) -> RelayExpr:
        """The data value of a function, and the clause that runs it. ``own`` is the name by which it calls itself."""
        captured = [one for one in free_vars(fn) if one is not own]
        kinds = [self.program.types.visit(one.checked_type) for one in captured]
        data = self.program.data(fn.checked_type)
        constructor = data.constructor(f"{data.header.name_hint}_{len(data.constructors)}", kinds)
        inner = _Scope(self.program)
        held = [Var(one.name_hint, kind) for one, kind in zip(captured, kinds, strict=True)]
        inner.memo_map.update(zip(captured, held, strict=True))
        inner.memo_map.update(zip(fn.params, data.params, strict=True))
        body = inner.visit(fn.body)
        body = Let(inner.visit(own), Call(constructor, held), body)
        data.clauses.append(Clause(PatternConstructor(constructor, [PatternVar(one) for one in held]), body))
        return Call(constructor, [self.visit(one) for one in captured], span=fn.span)

    def argument(self, expr: Any, kind: Type) -> Any:
        """An expression where a value of a type is wanted: functions and constructors by name become data values."""
        if not isinstance(expr, (GlobalVar, Constructor)):
            return self.visit(expr)
        assert isinstance(kind, FuncType)
        data = self.program.data(kind)
        key = (str(kind), expr.name_hint)
        if key not in self.program.named:
            constructor = data.constructor(f"{data.header.name_hint}_{expr.name_hint}", [])
            self.program.named[key] = constructor
            if isinstance(expr, GlobalVar):
                callee: RelayExpr = self.program.copy_of(expr, self.types_of(expr.checked_type, kind))
            else:
                callee = expr
            data.clauses.append(Clause(PatternConstructor(constructor, []), Call(callee, data.params)))
        return Call(self.program.named[key], [])

    @staticmethod
    def types_of(generic: FuncType, used: FuncType) -> dict[TypeVar, Type]:
        """The types at which a generic function is used."""
        holes: dict[TypeVar, Type] = {one: IncompleteType() for one in generic.type_params}
        solver = Solver()
        solver.unify(substitute_types(generic, holes, strip=True), used)
        return {one: solver.resolve(hole) for one, hole in holes.items()}

    def visit_call(self, call: Call) -> RelayExpr:
        callee = call.op
        if isinstance(callee, Op) or (isinstance(callee, Function) and callee.is_primitive):
            return call.replace(args=tuple([self.visit(one) for one in call.args]))
        used = self.used_type(call)
        arguments = [self.argument(one, kind) for one, kind in zip(call.args, used.arg_types, strict=True)]
        if isinstance(callee, GlobalVar):
            copy = self.program.copy_of(callee, self.types_of(callee.checked_type, used))
            return Call(copy, arguments, span=call.span)
        if isinstance(callee, Constructor):
            # Type arguments may hold functions; they follow from the result.
            return Call(callee, arguments, span=call.span)
        return Call(self.program.data(used).apply, [self.visit(callee), *arguments], span=call.span)

    @staticmethod
    def used_type(call: Call) -> FuncType:
        """The type of what is called, at this call."""
        generic = call.op.checked_type
        assert isinstance(generic, FuncType)
        solver = Solver()
        holes: dict[TypeVar, Type] = {one: IncompleteType() for one in generic.type_params}
        opened = substitute_types(generic, holes, strip=True)
        assert isinstance(opened, FuncType)
        for hole, given in zip(holes.values(), call.type_args, strict=False):
            solver.unify(hole, given)
        solver.unify(opened.ret_type, call.checked_type)
        for expected, argument in zip(opened.arg_types, call.args, strict=True):
            solver.unify(expected, argument.checked_type)
        found = solver.resolve(opened)
        assert isinstance(found, FuncType)
        return found


def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """A first-order form of a function. The functions and data types that it needs are added to the module; the
    function itself neither takes nor gives functions, and is not generic."""
    if func.type_params:
        raise TilewrightError("a generic function cannot be defunctionalized: its types are not known")
    with recursion_room():
        typed = _prepared(func, mod)
        if any(_holds_functions(one) for one in (*typed.checked_type.arg_types, typed.checked_type.ret_type)):
            raise TilewrightError(
                f"a function of type {typed.checked_type} cannot be defunctionalized: it takes or gives functions"
            )
        program = _Program(mod)
        made = _Scope(program).function(typed)
        program.finish()
        result = infer_expr(made, mod)
    assert isinstance(result, Function)
    return result
