"""The rules of type inference: the type of each kind of expression, and when type relations are solved.

One traversal gives every expression a type, incomplete where it is not yet known. Operator calls whose relation cannot
be solved immediately wait, and are tried again whenever more is known. What is still unknown at the end is an error.

A node's type is final if it depends only on the node: on constants, annotated variables and operators. Final nodes are
not visited again, so that inference after a pass costs only what the pass changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tilewright.relay.adt import (
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.expr_functor import ExprFunctor, ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer.solver import Mismatch, Solver, TypeInferenceError, substitute_types
from tilewright.relay.op.definition import RelationError
from tilewright.support.errors import OpError, TilewrightError
from tilewright.support.recursion import recursion_room

BOOL = TensorType((), "bool")


@dataclass(eq=False)
class _Waiting:
    """A call whose relation could not answer yet, and the type that stands for its result."""

    call: Call
    arguments: tuple[Type, ...]
    result: IncompleteType


class _Inference(ExprFunctor):
    """One run over the functions of a module."""

    def __init__(self, module: IRModule | None) -> None:
        super().__init__()
        self.module = module
        self.solver = Solver()
        self.waiting: list[_Waiting] = []
        self.globals: dict[str, Type] = {}
        self.unsettled: set[RelayExpr] = set()
        self.needs_annotation = False

    # Entry

    def visit(self, expr: RelayExpr) -> Type:
        if getattr(expr, "_settled", False):
            return expr.checked_type  # type: ignore[no-any-return]
        return super().visit(expr)  # type: ignore[no-any-return]

    def finish(self) -> None:
        """Ask waiting relations until all have answered, then give every expression its type."""
        self._settle_waiting()
        if self.waiting:
            self._fail_waiting(self.waiting[0])
        solver = self.solver
        for expr, found in self.memo_map.items():
            if isinstance(expr, Op):
                continue
            resolved = solver.resolve(found)
            if isinstance(expr, Var) and expr.type_annotation is None:
                self.needs_annotation = True
            if not solver.is_complete(resolved):
                self._fail_incomplete(expr, resolved)
            object.__setattr__(expr, "_checked_type_", resolved)
            if expr not in self.unsettled:
                object.__setattr__(expr, "_settled", True)

    def _settle_waiting(self) -> None:
        progress = True
        while self.waiting and progress:
            pending, self.waiting = self.waiting, []
            progress = False
            for each in pending:
                found = self._ask(each.call, each.arguments)
                if found is None:
                    self.waiting.append(each)
                else:
                    self._require(each.result, found, each.call, "the result")
                    progress = True

    def _fail_waiting(self, waiting: _Waiting) -> None:
        types = ", ".join(_text(self.solver.resolve(argument)) for argument in waiting.arguments)
        raise TypeInferenceError(
            f"the type of a call of {_name(waiting.call.op)} cannot be inferred from arguments of types ({types}); "
            "annotate the variables that it uses",
            waiting.call.span,
        )

    def _fail_incomplete(self, expr: RelayExpr, found: Type) -> None:
        what = (
            f"variable {expr.name_hint}"
            if isinstance(expr, Var)
            else f"an expression ({type(expr).__name__})"
        )
        raise TypeInferenceError(
            f"the type of {what} cannot be inferred, it is {_text(found)}; annotate it", expr.span
        )

    # Helpers

    def _require(self, expected: Type, found: Type, where: RelayExpr, what: str) -> Type:
        try:
            return self.solver.unify(expected, found)
        except Mismatch as mismatch:
            raise TypeInferenceError(
                f"{what} has type {_text(self.solver.resolve(found))}, "
                f"expected {_text(self.solver.resolve(expected))}: {mismatch}",
                where.span,
            ) from None

    def _depends(self, expr: RelayExpr, parts: Iterable[RelayExpr]) -> None:
        """An expression is settled only if all its parts are."""
        if any(part in self.unsettled for part in parts):
            self.unsettled.add(expr)

    # Leaves

    def visit_var(self, var: Var) -> Type:
        """The annotation, or a type to find."""
        if var.type_annotation is None:
            self.unsettled.add(var)
            return IncompleteType()
        if not self.solver.is_complete(var.type_annotation):
            self.unsettled.add(var)
        return var.type_annotation

    def visit_constant(self, const: Constant) -> Type:
        return const.tensor_type

    def visit_global_var(self, gv: GlobalVar) -> Type:
        self.unsettled.add(gv)
        found = self.globals.get(gv.name_hint)
        if found is not None:
            return found
        if self.module is None or gv.name_hint not in self.module:
            raise TypeInferenceError(f"there is no function @{gv.name_hint} in the module", gv.span)
        function = self.module[gv.name_hint]
        if not isinstance(function, Function):
            declared = getattr(function, "checked_type", None) if _has_type(function) else None
            return declared if isinstance(declared, Type) else IncompleteType()
        # The annotated type is used while the body, which may call the function, is inferred.
        self.globals[gv.name_hint] = self._declared(function)
        self._require(self.globals[gv.name_hint], self.visit(function), function, f"function @{gv.name_hint}")
        return self.globals[gv.name_hint]

    def visit_op(self, op: Op) -> Type:
        """Operators are called; they are not values."""
        raise TypeInferenceError(
            f"operator {op.name} is used as a value; wrap it in a function that calls it"
        )

    def visit_constructor(self, con: Constructor) -> Type:
        """A generic function from the fields to the data type."""
        definition = self._definition(con)
        if definition.type_vars:
            # What the constructor is called at depends on where the call stands.
            self.unsettled.add(con)
        return FuncType(con.inputs, TypeCall(con.belong_to, definition.type_vars), definition.type_vars)

    def _definition(self, con: Constructor) -> TypeData:
        if self.module is None or con.belong_to not in self.module.type_definitions:
            raise TypeInferenceError(
                f"the type {con.belong_to.name_hint} of constructor {con.name_hint} is not defined in the module"
            )
        found: TypeData = self.module.type_definitions[con.belong_to]
        return found

    # Compound expressions

    def visit_tuple(self, tup: Tuple) -> Type:
        made = TupleType([self.visit(field) for field in tup.fields])
        self._depends(tup, tup.fields)
        return made

    def visit_tuple_getitem(self, t: TupleGetItem) -> Type:
        found = self.solver.shallow(self.visit(t.tuple_value))
        self._depends(t, (t.tuple_value,))
        if isinstance(found, IncompleteType):
            self._settle_waiting()
            found = self.solver.shallow(found)
        if not isinstance(found, TupleType):
            raise TypeInferenceError(
                f"field {t.index} is read from a value of type {_text(self.solver.resolve(found))}, "
                "which is not a tuple"
                if not isinstance(found, IncompleteType)
                else f"field {t.index} is read from a value whose type is not known; annotate it",
                t.span,
            )
        if not 0 <= t.index < len(found.fields):
            raise TypeInferenceError(
                f"field {t.index} is read from a tuple of {len(found.fields)} fields", t.span
            )
        return found.fields[t.index]

    def visit_let(self, let: Let) -> Type:
        """The body's type; the variable has the value's, and a function may name itself."""
        chain: list[Let] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            if getattr(current, "_settled", False):
                break
            chain.append(current)
            variable, value = current.var, current.value
            declared = self.visit(variable)
            if isinstance(value, Function):
                self._require(declared, self._declared(value), current, f"variable {variable.name_hint}")
            self._require(declared, self.visit(value), current, f"variable {variable.name_hint}")
            current = current.body
        result = self.visit(current)
        for inner in reversed(chain):
            self._depends(inner, (inner.var, inner.value, inner.body))
            self.memo_map[inner] = result
        return result

    def visit_if(self, i: If) -> Type:
        """Both branches have one type; the condition is a scalar bool."""
        self._require(BOOL, self.visit(i.cond), i.cond, "the condition of an if")
        first = self.visit(i.true_branch)
        second = self.visit(i.false_branch)
        self._depends(i, (i.cond, i.true_branch, i.false_branch))
        try:
            return self.solver.unify(first, second)
        except Mismatch as mismatch:
            raise TypeInferenceError(
                f"the branches of an if have types {_text(self.solver.resolve(first))} and "
                f"{_text(self.solver.resolve(second))}: {mismatch}",
                i.span,
            ) from None

    def visit_ref_create(self, r: RefCreate) -> Type:
        made = RelayRefType(self.visit(r.value))
        self._depends(r, (r.value,))
        return made

    def visit_ref_read(self, r: RefRead) -> Type:
        inner = IncompleteType()
        self._require(RelayRefType(inner), self.visit(r.ref), r, "what is read")
        self._depends(r, (r.ref,))
        return inner

    def visit_ref_write(self, r: RefWrite) -> Type:
        """The empty tuple; the value fits the reference."""
        value = self.visit(r.value)
        self._require(RelayRefType(value), self.visit(r.ref), r, "what is written to")
        self._depends(r, (r.ref, r.value))
        return TupleType(())

    def _declared(self, fn: Function) -> Type:
        """The type that a function's annotations give, with types to find where there is none."""
        arguments = [self.visit(parameter) for parameter in fn.params]
        return FuncType(arguments, fn.ret_type or IncompleteType(), fn.type_params)

    def visit_function(self, fn: Function) -> Type:
        """From the parameters' types to the body's."""
        arguments = [self.visit(parameter) for parameter in fn.params]
        result = self.visit(fn.body)
        if fn.ret_type is not None:
            result = self._require(fn.ret_type, result, fn.body, "the function's result")
        else:
            self.needs_annotation = True
            self.unsettled.add(fn)
        self._depends(fn, (*fn.params, fn.body))
        return FuncType(arguments, result, fn.type_params)

    def visit_match(self, m: Match) -> Type:
        """All clauses have one type; each pattern fits the value."""
        data = self.visit(m.data)
        result: Type = IncompleteType()
        for clause in m.clauses:
            self._match(clause.lhs, data, m)
            result = self._require(result, self.visit(clause.rhs), clause.rhs, "the result of a clause")
        self.unsettled.add(m)
        return result

    def _match(self, pattern: Pattern, value: Type, where: Match) -> None:
        if isinstance(pattern, PatternVar):
            self._require(value, self.visit(pattern.var), pattern.var, f"variable {pattern.var.name_hint}")
        elif isinstance(pattern, PatternTuple):
            parts: list[Type] = [IncompleteType() for _ in pattern.patterns]
            self._require(value, TupleType(parts), where, "a tuple pattern")
            for inner, part in zip(pattern.patterns, parts, strict=True):
                self._match(inner, part, where)
        elif isinstance(pattern, PatternConstructor):
            made = self._instantiate(self.visit(pattern.constructor))
            assert isinstance(made, FuncType)
            self._require(
                value, made.ret_type, where, f"a pattern of constructor {pattern.constructor.name_hint}"
            )
            for inner, part in zip(pattern.patterns, made.arg_types, strict=True):
                self._match(inner, part, where)

    # Calls

    def visit_call(self, call: Call) -> Type:
        """By the operator's relation, or by the function's type."""
        if isinstance(call.op, Op):
            return self._call_operator(call, call.op)
        if isinstance(call.op, Function) and len(call.op.params) == len(call.args):
            # The body of a function that is called where it stands sees the arguments' types: it may read their fields.
            for parameter, argument in zip(call.op.params, call.args, strict=True):
                if parameter.type_annotation is None:
                    self._require(self.visit(parameter), self.visit(argument), call, parameter.name_hint)
        callee = self.solver.shallow(self.visit(call.op))
        arguments = [self.visit(argument) for argument in call.args]
        self._depends(call, (call.op, *call.args))
        if isinstance(callee, IncompleteType):
            result: Type = IncompleteType()
            self._require(callee, FuncType(arguments, result), call, "what is called")
            return result
        if not isinstance(callee, FuncType):
            raise TypeInferenceError(
                f"a value of type {_text(callee)} is called, which is not a function", call.span
            )
        callee = self._instantiate(callee, call.type_args)
        assert isinstance(callee, FuncType)
        if len(callee.arg_types) != len(arguments):
            raise TypeInferenceError(
                f"{_name(call.op)} takes {len(callee.arg_types)} arguments, the call has {len(arguments)}",
                call.span,
            )
        for position, (expected, found) in enumerate(zip(callee.arg_types, arguments, strict=True)):
            self._require(expected, found, call, f"argument {position} of {_name(call.op)}")
        return callee.ret_type

    def _instantiate(self, given: Type, type_args: Sequence[Type] = ()) -> Type:
        """A generic function's type with fresh types, or those given, for its type parameters."""
        if not isinstance(given, FuncType) or not given.type_params:
            return given
        fresh: dict[TypeVar, Type] = {
            parameter: type_args[position] if position < len(type_args) else IncompleteType()
            for position, parameter in enumerate(given.type_params)
        }
        return substitute_types(given, fresh, strip=True)

    def _call_operator(self, call: Call, op: Op) -> Type:
        arguments = tuple([self.visit(argument) for argument in call.args])
        self._depends(call, call.args)
        if op.num_inputs >= 0 and len(arguments) != op.num_inputs:
            raise TypeInferenceError(
                f"{op.name} takes {op.num_inputs} arguments, the call has {len(arguments)}", call.span
            )
        found = self._ask(call, arguments)
        if found is not None:
            return found
        result = IncompleteType()
        self.waiting.append(_Waiting(call, arguments, result))
        return result

    def _ask(self, call: Call, arguments: tuple[Type, ...]) -> Type | None:
        """The answer of an operator's relation; None where it has to wait."""
        op = call.op
        assert isinstance(op, Op)
        registered = op.get_attr("TypeRelation")
        if registered is None or registered[1] is None:
            raise TypeInferenceError(f"operator {op.name} has no type relation", call.span)
        rule, relation = registered
        types = [self.solver.resolve(argument) for argument in arguments]
        try:
            complete = op.get_attr("FCompleteTypes")
            if complete is not None and not all(self.solver.is_complete(one) for one in types):
                for position, known in enumerate(complete(types, call.attrs) or ()):
                    if known is not None:
                        self.solver.unify(arguments[position], known)
                types = [self.solver.resolve(argument) for argument in arguments]
            return relation(types, call.attrs)  # type: ignore[no-any-return]
        except (RelationError, Mismatch, OpError) as error:
            listed = ", ".join(_text(one) for one in types)
            reason = error.message if isinstance(error, TilewrightError) else str(error)
            raise TypeInferenceError(
                f"{op.name} cannot be applied to ({listed}): {reason} (rule {rule})", call.span
            ) from error


class _Annotate(ExprMutator):
    """Writes what was inferred into variables and functions that said nothing."""

    def visit(self, expr: RelayExpr) -> Any:
        known = expr in self.memo_map
        made = super().visit(expr)
        if not known and made is not expr and not _has_type(made) and _has_type(expr):
            object.__setattr__(made, "_checked_type_", expr.checked_type)
        return made

    def visit_var(self, var: Var) -> RelayExpr:
        if var.type_annotation is not None:
            return var
        return var.replace(type_annotation=var.checked_type)

    def visit_function(self, fn: Function) -> RelayExpr:
        made = super().visit_function(fn)
        assert isinstance(made, Function)
        if made.ret_type is None and isinstance(fn.checked_type, FuncType):
            made = made.replace(ret_type=fn.checked_type.ret_type)
        return made


def _has_type(expr: object) -> bool:
    return getattr(expr, "_checked_type_", None) is not None


def _name(op: RelayExpr) -> str:
    if isinstance(op, Op):
        return op.name
    return f"@{op.name_hint}" if isinstance(op, GlobalVar) else str(getattr(op, "name_hint", "a function"))


def _text(given: Type) -> str:
    return "?" if isinstance(given, IncompleteType) else str(given)


def _annotated(expr: Any, run: _Inference) -> Any:
    return _Annotate().visit(expr) if run.needs_annotation else expr


def infer_module(module: IRModule) -> IRModule:
    """The module with the type of every expression set and left-out annotations filled in."""
    if all(
        not isinstance(one, Function) or getattr(one, "_settled", False) for one in module.functions.values()
    ):
        return module
    run = _Inference(module)
    with recursion_room():
        for variable, function in module.functions.items():
            if isinstance(function, Function):
                object.__setattr__(variable, "_checked_type_", None)
                run.visit(variable)
        run.finish()
        mutator = _Annotate()

        def annotate(variable: GlobalVar, function: BaseFunc) -> BaseFunc:
            if not isinstance(function, Function) or not run.needs_annotation:
                return function
            made: BaseFunc = mutator.visit(function)
            return made

        return module.map_functions(annotate)


def infer_function(function: Function, module: IRModule | None = None) -> Function:
    """One function; the module gives the functions and types that it names."""
    made = infer_expr(function, module)
    assert isinstance(made, Function)
    return made


def infer_expr(expr: RelayExpr, module: IRModule | None = None) -> RelayExpr:
    """An expression; its free variables carry their types, or get them from how they are used."""
    run = _Inference(module)
    with recursion_room():
        run.visit(expr)
        run.finish()
        return _annotated(expr, run)  # type: ignore[no-any-return]


def type_of(expr: RelayExpr, module: IRModule | None = None) -> Type:
    """The type of an expression, inferred if need be."""
    if not _has_type(expr):
        infer_expr(expr, module)
    found: Type = expr.checked_type
    return found
