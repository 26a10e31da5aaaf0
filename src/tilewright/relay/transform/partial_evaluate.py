"""PartialEvaluate: evaluates at compile time what does not depend on the model's inputs.

The program, in A-normal form, is interpreted. Each value is known as far as possible: a constant, a tuple or data whose
parts are known in turn, a function, a reference whose contents are known. What is unknown becomes a let in the
remaining program. Known operators are computed, known branches taken, known functions called in place.

* A call of a function that is already being called is evaluated in place only if its arguments differ from those of all
  enclosing calls, and not within an undecided branch: such recursion might not terminate.
* The contents of references are forgotten where an unknown call or branch may have changed them.

The remaining program is in A-normal form and may have unused lets: run DeadCodeElimination after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import Type, TypeVar
from tilewright.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    bound_variables,
)
from tilewright.relay.analysis import free_type_vars
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
from tilewright.relay.function import Function
from tilewright.relay.transform.fold_constant import folded
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.to_a_normal_form import ToANormalFormExpr

_MOST_CALLS = 2_000
"""Calls in place, over one function: a bound on the size of what remains."""


@dataclass(eq=False, slots=True)
class _Block:
    """A part of the program that remains, with its lets so far."""

    lets: list[tuple[Var, RelayExpr]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Closure:
    """A known function, with what the variables around it stand for. ``own`` is the name by which it calls itself."""

    function: Function
    around: dict[Var, _Value]
    own: Var | None = None


@dataclass(eq=False, slots=True)
class _Data:
    """A value that a known constructor made; a tuple, where there is none."""

    constructor: Constructor | None
    fields: tuple[_Value, ...]


@dataclass(eq=False, slots=True)
class _Reference:
    """A reference that the program itself made."""


@dataclass(eq=False, slots=True)
class _Value:
    """The known part of a value, and its expression in the remaining program.

    The expression is a constant, a name, or a variable that is bound in ``block``; None where none was needed so far.
    """

    expr: RelayExpr | None
    known: Constant | _Closure | _Data | _Reference | None = None
    block: _Block | None = None


@dataclass(eq=False, slots=True)
class _Active:
    """A call that is being evaluated."""

    function: Function
    arguments: tuple[object, ...]
    undecided: int


class _Evaluator(Functor):
    def __init__(self, mod: IRModule, type_params: Sequence[TypeVar]) -> None:
        self.mod = mod
        self.type_params = frozenset(type_params)
        self.normal: dict[Function, Function] = {}
        self.blocks: list[_Block] = []
        self.variables: dict[Var, _Value] = {}
        self.contents: dict[_Reference, _Value] = {}
        self.active: list[_Active] = []
        self.undecided = 0
        self.calls_left = _MOST_CALLS

    def normalised(self, function: Function) -> Function:
        """A function of the module in A-normal form."""
        known = self.normal.get(function)
        if known is None:
            made: Any = ToANormalFormExpr(function)
            known = self.normal[function] = made
        return known

    def annotation(self, typ: Type | None, function: Function) -> Type | None:
        """A type as it can occur in the remaining program: the parameters of a generic function that was called in
        place are not known there."""
        if typ is None or self.type_params.union(function.type_params).issuperset(free_type_vars(typ)):
            return typ
        return None

    # The program that remains

    def emit(self, expr: RelayExpr, name: str = "x", known: Any = None) -> _Value:
        """A let in the innermost block."""
        variable = Var(name, span=expr.span)
        self.blocks[-1].lets.append((variable, expr))
        return _Value(variable, known, self.blocks[-1])

    @contextmanager
    def block(self) -> Iterator[_Block]:
        """A part of the program that may or may not run: what references hold before it is known in it; what it may
        change is not known after it."""
        before = dict(self.contents)
        made = _Block()
        self.blocks.append(made)
        self.undecided += 1
        try:
            yield made
        finally:
            self.blocks.pop()
            self.undecided -= 1
            after = self.contents
            self.contents = {key: value for key, value in before.items() if after.get(key) is value}

    @staticmethod
    def closed(block: _Block, result: RelayExpr) -> RelayExpr:
        """A block's result with its lets around it."""
        for variable, value in reversed(block.lets):
            result = Let(variable, value, result)
        return result

    def expr(self, value: _Value) -> RelayExpr:
        """The expression for a value, where the innermost block can use it."""
        if value.expr is not None and (value.block is None or value.block in self.blocks):
            return value.expr
        known = value.known
        if isinstance(known, _Closure):
            made = self.remaining_function(known)
        elif isinstance(known, _Data):
            fields = [self.expr(each) for each in known.fields]
            made = self.emit(Tuple(fields) if known.constructor is None else Call(known.constructor, fields))
        else:
            assert isinstance(known, Constant)
            made = _Value(known)
        value.expr, value.block = made.expr, made.block
        assert value.expr is not None
        return value.expr

    def remaining_function(self, closure: _Closure) -> _Value:
        """A let for a function that is needed as a value: its body for arguments of which nothing is known."""
        function = closure.function
        name = Var(closure.own.name_hint if closure.own is not None else "f")
        value = _Value(name, closure, self.blocks[-1])
        saved = self.variables, self.contents
        self.variables = dict(closure.around)
        # The function may be called at any time, so nothing is known of what references hold.
        self.contents = {}
        if closure.own is not None:
            self.variables[closure.own] = value
        params = [
            Var(parameter.name_hint, self.annotation(parameter.type_annotation, function))
            for parameter in function.params
        ]
        for parameter, made in zip(function.params, params, strict=True):
            self.variables[parameter] = _Value(made)
        self.active.append(_Active(function, (None,) * len(params), self.undecided + 1))
        # The name is in force within the function, before the let is there.
        with self.block() as inner:
            result = self.expr(self.run(function.body))
        self.active.pop()
        self.variables, self.contents = saved
        remaining = function.replace(
            params=tuple(params),
            body=self.closed(inner, result),
            ret_type=self.annotation(function.ret_type, function),
        )
        self.blocks[-1].lets.append((name, remaining))
        return value

    # Evaluation

    def run(self, expr: RelayExpr) -> _Value:
        """The value of a block in A-normal form."""
        current: Any = expr
        while isinstance(current, Let):
            self.variables[current.var] = self.named(current.var, current.value)
            current = current.body
        return self.visit(current)  # type: ignore[no-any-return]

    def named(self, name: Var, value: Any) -> _Value:
        """The value of a let."""
        if isinstance(value, Function) and not value.is_primitive:
            return _Value(None, _Closure(value, self.variables, name))
        return self.visit(value)  # type: ignore[no-any-return]

    def visit_default(self, node: Any) -> _Value:
        return _Value(node)

    def visit_var(self, var: Var) -> _Value:
        return self.variables.get(var) or _Value(var)

    def visit_constant(self, const: Constant) -> _Value:
        return _Value(const, const)

    def visit_global_var(self, name: GlobalVar) -> _Value:
        if name not in self.mod:
            return _Value(name)
        function = self.mod[name]
        if not isinstance(function, Function) or function.attrs.get("Compiler"):
            return _Value(name)
        return _Value(name, _Closure(self.normalised(function), {}))

    def visit_function(self, fn: Function) -> _Value:
        return _Value(fn) if fn.is_primitive else _Value(None, _Closure(fn, self.variables))

    def visit_tuple(self, tup: Tuple) -> _Value:
        return _Value(None, _Data(None, tuple([self.visit(each) for each in tup.fields])))

    def visit_tuple_getitem(self, item: TupleGetItem) -> _Value:
        value = self.visit(item.tuple_value)
        if isinstance(value.known, _Data):
            return value.known.fields[item.index]
        return self.emit(item.replace(tuple_value=self.expr(value)))

    def visit_ref_create(self, create: RefCreate) -> _Value:
        value, reference = self.visit(create.value), _Reference()
        self.contents[reference] = value
        return self.emit(create.replace(value=self.expr(value)), "r", reference)

    def visit_ref_read(self, read: RefRead) -> _Value:
        reference = self.visit(read.ref)
        held = self.contents.get(reference.known) if isinstance(reference.known, _Reference) else None
        if held is not None:
            return held
        value = self.emit(read.replace(ref=self.expr(reference)))
        if isinstance(reference.known, _Reference):
            self.contents[reference.known] = value
        return value

    def visit_ref_write(self, write: RefWrite) -> _Value:
        reference, value = self.visit(write.ref), self.visit(write.value)
        self.emit(write.replace(ref=self.expr(reference), value=self.expr(value)), "w")
        if isinstance(reference.known, _Reference):
            self.contents[reference.known] = value
        else:
            self.contents.clear()
        return _Value(None, _Data(None, ()))

    def visit_if(self, conditional: If) -> _Value:
        cond = self.visit(conditional.cond)
        if isinstance(cond.known, Constant):
            taken = bool(cond.known.data.numpy())
            return self.run(conditional.true_branch if taken else conditional.false_branch)
        branches = []
        for branch in (conditional.true_branch, conditional.false_branch):
            with self.block() as inner:
                branches.append(self.closed(inner, self.expr(self.run(branch))))
        return self.emit(If(self.expr(cond), branches[0], branches[1], conditional.span))

    def visit_match(self, match: Match) -> _Value:
        data = self.visit(match.data)
        for clause in match.clauses:
            found: dict[Var, _Value] = {}
            fits = _fits(clause.lhs, data, found)
            if fits is None:
                break
            if fits:
                self.variables.update(found)
                return self.run(clause.rhs)
        clauses = []
        for clause in match.clauses:
            renamed = {variable: Var(variable.name_hint) for variable in bound_variables(clause.lhs)}
            for variable, made in renamed.items():
                self.variables[variable] = _Value(made)
            with self.block() as inner:
                result = self.closed(inner, self.expr(self.run(clause.rhs)))
            clauses.append(Clause(_renamed(clause.lhs, renamed), result))
        return self.emit(Match(self.expr(data), clauses, match.complete, match.span))

    # Calls

    def visit_call(self, call: Call) -> _Value:
        arguments = [self.visit(argument) for argument in call.args]
        if isinstance(call.op, Constructor):
            return _Value(None, _Data(call.op, tuple(arguments)))
        if isinstance(call.op, Op) or (isinstance(call.op, Function) and call.op.is_primitive):
            return self.call_operator(call, arguments)
        callee = self.visit(call.op)
        if isinstance(callee.known, _Closure) and self.goes_on(callee.known.function, arguments):
            return self.call_in_place(callee.known, callee, arguments)
        made = call.replace(op=self.expr(callee), args=tuple([self.expr(one) for one in arguments]))
        self.contents.clear()
        return self.emit(made)

    def call_operator(self, call: Call, arguments: Sequence[_Value]) -> _Value:
        constants = [_constant(argument) for argument in arguments]
        if isinstance(call.op, Op) and all(one is not None for one in constants):
            value = _from_constant(folded(call.replace(args=tuple(constants))))
            if value is not None:
                return value
        return self.emit(call.replace(args=tuple([self.expr(one) for one in arguments])))

    def goes_on(self, function: Function, arguments: Sequence[_Value]) -> bool:
        """True if a known function is called in place; see the head of the file."""
        if self.calls_left <= 0 or len(arguments) != len(function.params):
            return False
        around = [call for call in self.active if call.function is function]
        if not around:
            return True
        key = tuple([_key(argument) for argument in arguments])
        return self.undecided == around[-1].undecided and all(call.arguments != key for call in around)

    def call_in_place(self, closure: _Closure, callee: _Value, arguments: Sequence[_Value]) -> _Value:
        self.calls_left -= 1
        function = closure.function
        saved = self.variables
        self.variables = dict(closure.around)
        if closure.own is not None:
            self.variables[closure.own] = callee
        self.variables.update(zip(function.params, arguments, strict=True))
        key = tuple([_key(argument) for argument in arguments])
        self.active.append(_Active(function, key, self.undecided))
        result = self.run(function.body)
        self.active.pop()
        self.variables = saved
        return result


def _constant(value: _Value) -> RelayExpr | None:
    """A value of which all is known, as a constant or a tuple of constants."""
    if isinstance(value.known, Constant):
        return value.known
    if isinstance(value.known, _Data) and value.known.constructor is None:
        fields = [_constant(each) for each in value.known.fields]
        return None if any(each is None for each in fields) else Tuple(fields)  # type: ignore[arg-type]
    return None


def _from_constant(expr: Any) -> _Value | None:
    """The value of a constant or a tuple of constants; None for anything else."""
    if isinstance(expr, Constant):
        return _Value(expr, expr)
    if isinstance(expr, Tuple):
        fields = [_from_constant(each) for each in expr.fields]
        if all(each is not None for each in fields):
            return _Value(None, _Data(None, tuple(fields)))  # type: ignore[arg-type]
    return None


def _key(value: _Value) -> object:
    """A key that distinguishes the arguments of two calls of one function."""
    known = value.known
    if isinstance(known, Constant):
        return (str(known.data.dtype), known.data.shape, known.data.numpy().tobytes())
    if isinstance(known, _Data):
        return (known.constructor, *[_key(each) for each in known.fields])
    if isinstance(known, _Closure):
        return known.function
    return None


def _fits(pattern: Pattern, value: _Value, found: dict[Var, _Value]) -> bool | None:
    """Whether a value matches; None where too little is known of it."""
    if isinstance(pattern, PatternVar):
        found[pattern.var] = value
        return True
    if not isinstance(pattern, (PatternConstructor, PatternTuple)):
        return True
    if not isinstance(value.known, _Data):
        return None
    if isinstance(pattern, PatternConstructor):
        constructor = value.known.constructor
        if constructor is None or constructor.tag != pattern.constructor.tag:
            return False
    result: bool | None = True
    for inner, each in zip(pattern.patterns, value.known.fields, strict=True):
        fits = _fits(inner, each, found)
        if fits is False:
            return False
        result = result and fits
    return result


def _renamed(pattern: Pattern, names: dict[Var, Var]) -> Pattern:
    if isinstance(pattern, PatternVar):
        return PatternVar(names[pattern.var])
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        return pattern.map_children(lambda inner: _renamed(inner, names))
    return pattern


@dataclass
class PartialEvaluate(FunctionPass):
    """Evaluate what is known when the program is compiled."""

    name = "PartialEvaluate"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Evaluate one function for arguments of which nothing is known."""
        if func.is_primitive:
            return func
        evaluator = _Evaluator(mod, func.type_params)
        normal = evaluator.normalised(func)
        evaluator.active.append(_Active(normal, (None,) * len(func.params), 1))
        with evaluator.block() as block:
            result = evaluator.expr(evaluator.run(normal.body))
        return func.replace(body=evaluator.closed(block, result))
