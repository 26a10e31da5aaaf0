"""ToCPS: continuation-passing style. A function takes one more argument, a function of its result, and calls that
instead of returning.

Operators, constructors and kernels are still called directly: only function calls pass continuations. The type of the
last result, "answer", is a type parameter: fn(A) -> R becomes fn[answer](A, fn(R) -> answer) -> answer.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import FuncType, Type, TypeVar
from tilewright.relay.adt import Clause, Match, bound_variables
from tilewright.relay.expr import Call, If, Let, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_function
from tilewright.relay.transform.to_a_normal_form import ToANormalFormExpr
from tilewright.relay.type_functor import TypeMutator
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room


class _FunctionTypes(TypeMutator):
    """Function types take a continuation."""

    def __init__(self, answer: TypeVar) -> None:
        self.answer = answer

    def visit_func_type(self, ft: FuncType) -> Type:
        arguments = [self.visit(argument) for argument in ft.arg_types]
        continuation = FuncType([self.visit(ft.ret_type)], self.answer)
        return FuncType([*arguments, continuation], self.answer, ft.type_params, ft.type_constraints)


class _Convert(ExprMutator):
    """Rewrites atoms and values; ``block`` rewrites a chain of lets from its end."""

    def __init__(self, answer: TypeVar, functions: _Globals) -> None:
        super().__init__()
        self.answer = answer
        self.types = _FunctionTypes(answer)
        self.functions = functions

    def type_of(self, variable: Var) -> Type | None:
        """The new type of a variable of the program."""
        found = variable.type_annotation or getattr(variable, "_checked_type_", None)
        return None if found is None else self.types.visit(found)

    def define(self, variable: Var) -> Var:
        """The variable that stands for one of the program."""
        made = Var(variable.name_hint, self.type_of(variable), variable.span)
        self.memo_map[variable] = made
        return made

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return self.functions.converted(gvar)

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.is_primitive:
            return fn
        params = [self.define(parameter) for parameter in fn.params]
        result = fn.ret_type
        given = None if result is None else FuncType([self.types.visit(result)], self.answer)
        continuation = Var("k", given)
        body = self.block(fn.body, continuation)
        return Function([*params, continuation], body, self.answer, fn.type_params, fn.attrs, fn.span)

    def block(self, expr: RelayExpr, continuation: Var) -> RelayExpr:
        """Computes a block in A-normal form and calls the continuation with the result."""
        lets: list[Let] = []
        current: Any = expr
        while isinstance(current, Let):
            self.define(current.var)
            lets.append(current)
            current = current.body
        rest: RelayExpr = Call(continuation, [self.visit(current)])
        for let in reversed(lets):
            rest = self.binding(self.memo_map[let.var], let.value, rest)
        return rest

    def binding(self, variable: Var, value: Any, rest: RelayExpr) -> RelayExpr:
        """Computes a value, gives it a name, and continues with the rest."""
        if isinstance(value, (If, Match)):
            then = Var("then")
            bound = Function([variable], rest, self.answer)
            return Let(then, bound, self.branches(value, then))
        if isinstance(value, Call) and not _is_direct(value.op):
            then_rest = Function([variable], rest, self.answer)
            args = [self.visit(argument) for argument in value.args]
            return Call(self.visit(value.op), [*args, then_rest], None, self.instance(value), value.span)
        return Let(variable, self.visit(value), rest)

    def instance(self, call: Call) -> tuple[Type, ...]:
        """The types given to a generic function; those of the module take the answer's too, which inference finds."""
        if not call.type_args or isinstance(call.op, GlobalVar):
            return ()
        return tuple([self.types.visit(given) for given in call.type_args])

    def branches(self, value: If | Match, then: Var) -> RelayExpr:
        """A conditional or match each of whose ends calls the continuation."""
        if isinstance(value, If):
            first = self.block(value.true_branch, then)
            return If(self.visit(value.cond), first, self.block(value.false_branch, then), value.span)
        clauses = []
        for clause in value.clauses:
            for variable in bound_variables(clause.lhs):
                self.define(variable)
            clauses.append(Clause(self.visit_pattern(clause.lhs), self.block(clause.rhs, then)))
        return Match(self.visit(value.data), clauses, value.complete, value.span)


def _is_direct(callee: RelayExpr) -> bool:
    """True for what takes no continuation."""
    return isinstance(callee, (Op, Constructor)) or (isinstance(callee, Function) and callee.is_primitive)


class _Globals:
    """The functions of a module in continuation-passing style, made when they are first met."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.names: dict[str, GlobalVar] = {}

    def converted(self, name: GlobalVar) -> GlobalVar:
        """The name of the converted function, which is in the module."""
        known = self.names.get(name.name_hint)
        if known is None:
            function = self.mod[name]
            if not isinstance(function, Function):
                raise TilewrightError(f"{name.name_hint} is not a function of the graph level")
            known = self.names[name.name_hint] = GlobalVar(f"{name.name_hint}_cps")
            self.mod[known] = self.function(function)
        return known

    def function(self, function: Function) -> Function:
        """One function, converted."""
        normal: Any = ToANormalFormExpr(infer_function(function, self.mod))
        typed = infer_function(normal, self.mod)
        answer = TypeVar("answer")
        with recursion_room():
            made: Any = _Convert(answer, self).visit(typed)
        return made.replace(type_params=(*made.type_params, answer))  # type: ignore[no-any-return]


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """A function in continuation-passing style. Functions of the module that it calls are added to the module in that
    style, under their names with "_cps"."""
    if not isinstance(func, Function):
        raise TilewrightError(f"a function is converted, not {type(func).__name__}")
    return _Globals(mod if mod is not None else IRModule()).function(func)


def ToCPS(expr: Function, mod: IRModule | None = None) -> Function:
    """See ``to_cps``."""
    return to_cps(expr, mod)


class _Substitute(TypeMutator):
    def __init__(self, variable: TypeVar, value: Type) -> None:
        self.variable = variable
        self.value = value

    def visit_type_var(self, tv: TypeVar) -> Type:
        return self.value if tv is self.variable else tv


def un_cps(func: Function) -> Function:
    """A function in direct style that calls one in continuation-passing style with the continuation that gives the
    result."""
    if not func.params or not func.type_params:
        raise TilewrightError(
            "a function in continuation-passing style has a continuation and an answer type"
        )
    answer = func.type_params[-1]
    continuation = func.params[-1].type_annotation
    if not isinstance(continuation, FuncType) or len(continuation.arg_types) != 1:
        raise TilewrightError("the last parameter of the function is not a continuation")
    result: Type = continuation.arg_types[0]
    substitute = _Substitute(answer, result)
    params = [
        Var(
            parameter.name_hint,
            None if parameter.type_annotation is None else substitute.visit(parameter.type_annotation),
        )
        for parameter in func.params[:-1]
    ]
    value = Var("x", result)
    identity = Function([value], value, result)
    types = (*func.type_params[:-1], result)
    return Function(
        params, Call(func, [*params, identity], None, types), result, func.type_params[:-1], func.attrs
    )
