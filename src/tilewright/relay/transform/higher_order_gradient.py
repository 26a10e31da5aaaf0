"""Reverse-mode gradients of any program: closures, recursion, branches, tuples, references, data types.

The program is rewritten to compute with pairs of a value and a reference to its gradient (``gradient_types`` has the
types). While it runs forward, it records the backward pass: a reference, the *backpropagator*, holds a function that
adds to the gradients of arguments what follows from those of results, from the last operation to the first. Consecutive
operations share one such function. After the forward pass, the gradient of the result is set to one, the backward pass
runs, and the gradients of the parameters are read.

The rewritten program is an ordinary program, so it has a gradient too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import CallEffectKind, Op
from tilewright.ir.type import FuncType, RelayRefType, TupleType, Type
from tilewright.relay.adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
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
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.op.calls import call as call_operator
from tilewright.relay.transform.lib.checkpoint_segments import SEGMENT, outline_checkpoints
from tilewright.relay.transform.lib.fresh_variables import with_fresh_variables
from tilewright.relay.transform.lib.gradient_rules import (
    carries_gradient,
    check_differentiable,
    field_of,
    filled_like,
    gradient_type,
    operator_gradients,
)
from tilewright.relay.transform.lib.gradient_types import BACKPROPAGATOR, GradientTypes
from tilewright.relay.transform.to_a_normal_form import ToANormalFormExpr
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room

_UNIT = TupleType([])


@dataclass(eq=False)
class _Tensor:
    """A tensor and the reference to its gradient; None where it has none, or where no parameter leads to it."""

    value: RelayExpr
    gradient: RelayExpr | None
    kind: Type


@dataclass(eq=False)
class _Fields:
    """A tuple whose fields are known one by one."""

    parts: list[Any]


@dataclass(eq=False)
class _Whole:
    """Any other value, in its rewritten form."""

    expr: RelayExpr


_Value = _Tensor | _Fields | _Whole


@dataclass(eq=False)
class _Backpropagator:
    """The variable of the reference to the backpropagator."""

    variable: Var
    used: bool = False

    def __call__(self) -> Var:
        self.used = True
        return self.variable


@dataclass(eq=False)
class _Block:
    """The rewritten lets of a block, and what its operations leave for the backward pass."""

    backpropagator: _Backpropagator
    lets: list[tuple[Var, RelayExpr]] = field(default_factory=list)
    backward: list[Callable[[_Block], None]] = field(default_factory=list)

    def let(self, name: str, kind: Type, value: RelayExpr) -> Var:
        variable = Var(name, kind)
        self.lets.append((variable, value))
        return variable

    def run(self, effect: RelayExpr) -> None:
        """Evaluate for its effect."""
        self.let("_", _UNIT, effect)

    def flush(self) -> None:
        """Hand what the operations so far left to the backpropagator, in front of what is there."""
        if not self.backward:
            return
        rest = self.let("rest", FuncType([], _UNIT), RefRead(self.backpropagator()))
        inner = _Block(self.backpropagator)
        self.run_backward(inner)
        function = Function([], inner.close(Call(rest, [])), _UNIT)
        self.run(RefWrite(self.backpropagator(), function))

    def run_backward(self, within: _Block) -> None:
        """Put what the operations left, the last first, into a block."""
        for action in reversed(self.backward):
            action(within)
        self.backward.clear()

    def close(self, result: RelayExpr) -> RelayExpr:
        """The lets around a result."""
        for variable, value in reversed(self.lets):
            result = Let(variable, value, result, span=value.span)
        return result


class _Known(ExprMutator):
    """Replaces one call by the variable that holds its result."""

    def __init__(self, call: Call, result: Var) -> None:
        super().__init__()
        self.memo_map[call] = result


class _Reverse:
    """Rewrites programs in A-normal form. ``_RULES`` has the methods by what a let binds."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self.types = GradientTypes(mod)
        self.values: dict[Var, _Value] = {}
        self.segments: dict[Var, Function] = {}
        self.globals: dict[str, GlobalVar] = {}

    # Values

    def unknown(self, expr: RelayExpr, kind: Type) -> _Value:
        """The value of an expression in rewritten form, by its type before."""
        if isinstance(kind, TupleType):
            return _Fields(
                [self.unknown(TupleGetItem(expr, index), part) for index, part in enumerate(kind.fields)]
            )
        if carries_gradient(kind):
            return _Tensor(TupleGetItem(expr, 0), TupleGetItem(expr, 1), kind)
        return _Whole(expr)

    def expression(self, value: _Value) -> RelayExpr:
        """A value as an expression in rewritten form."""
        if isinstance(value, _Fields):
            return Tuple([self.expression(part) for part in value.parts])
        if isinstance(value, _Tensor):
            gradient = value.gradient
            if gradient is None:
                gradient = RefCreate(call_operator("zeros_like", value.value))
            return Tuple([value.value, gradient])
        return value.expr

    def plain(self, value: _Value) -> RelayExpr:
        """The value without gradients, as an operator takes it."""
        if isinstance(value, _Fields):
            return Tuple([self.plain(part) for part in value.parts])
        return value.value if isinstance(value, _Tensor) else value.expr

    def is_active(self, value: _Value) -> bool:
        """True if gradients may flow into a value."""
        if isinstance(value, _Fields):
            return any(self.is_active(part) for part in value.parts)
        return isinstance(value, _Tensor) and value.gradient is not None

    def with_gradient(self, block: _Block, value: RelayExpr, kind: Type) -> _Value:
        """A new value of tensors, with gradients of zero."""
        if isinstance(kind, TupleType):
            parts = enumerate(kind.fields)
            return _Fields([self.with_gradient(block, field_of(value, index), part) for index, part in parts])
        if not carries_gradient(kind):
            return _Whole(value)
        zeros = RefCreate(call_operator("zeros_like", value))
        return _Tensor(value, block.let("gradient", RelayRefType(kind), zeros), kind)

    def without_gradient(self, value: RelayExpr, kind: Type) -> _Value:
        """A new value of tensors that no parameter leads to."""
        if isinstance(kind, TupleType):
            parts = enumerate(kind.fields)
            return _Fields([self.without_gradient(field_of(value, index), part) for index, part in parts])
        return _Tensor(value, None, kind) if carries_gradient(kind) else _Whole(value)

    def read(self, block: _Block, value: _Value) -> RelayExpr:
        """The gradient of a value so far."""
        if isinstance(value, _Fields):
            return Tuple([self.read(block, part) for part in value.parts])
        if isinstance(value, _Tensor) and value.gradient is not None:
            return block.let("g", value.kind, RefRead(value.gradient))
        return call_operator("zeros_like", self.plain(value))

    def add(self, block: _Block, value: _Value, gradient: RelayExpr) -> None:
        """Add to the gradients of a value."""
        if isinstance(value, _Fields):
            for index, part in enumerate(value.parts):
                self.add(block, part, field_of(gradient, index))
        elif isinstance(value, _Tensor) and value.gradient is not None:
            total = call_operator("add", RefRead(value.gradient), gradient)
            block.run(RefWrite(value.gradient, total))

    # Blocks

    def run(self, block: _Block, expr: RelayExpr) -> _Value:
        """Rewrite a chain of lets into a block; gives the value of its result."""
        while isinstance(expr, Let):
            self.bind(block, expr.var, expr.value)
            expr = expr.body
        return self.atom(expr)

    def block(self, expr: RelayExpr, backpropagator: _Backpropagator) -> RelayExpr:
        block = _Block(backpropagator)
        result = self.expression(self.run(block, expr))
        block.flush()
        return block.close(result)

    def atom(self, expr: Any) -> _Value:
        """The value of an expression that needs no let."""
        if isinstance(expr, Var):
            return self.values[expr]
        if isinstance(expr, GlobalVar):
            return _Whole(self.global_function(expr))
        if isinstance(expr, Constructor):
            return _Whole(self.types.constructor(expr))
        raise TilewrightError(f"a {type(expr).__name__} has no gradient", span=expr.span)

    def bind(self, block: _Block, variable: Var, value: Any) -> None:
        """The rewritten value of a let."""
        if isinstance(value, Function):
            if value.attrs.get(SEGMENT):
                self.segments[variable] = value
                return
            # The variable is there before the value: the function may call itself.
            name = Var(variable.name_hint, self.types.visit(variable.checked_type))
            self.values[variable] = _Whole(name)
            block.lets.append((name, self.function(value)))
            return
        rule = _RULES.get(type(value))
        self.values[variable] = self.atom(value) if rule is None else rule(self, value, block)

    def bound(self, block: _Block, old: RelayExpr, made: RelayExpr) -> _Value:
        """A let of an expression in rewritten form."""
        kind = old.checked_type
        return self.unknown(block.let("x", self.types.visit(kind), made), kind)

    def _constant(self, node: Constant, block: _Block) -> _Value:
        return self.without_gradient(node, node.tensor_type)

    def _tuple(self, node: Tuple, block: _Block) -> _Value:
        return _Fields([self.atom(part) for part in node.fields])

    def _tuple_getitem(self, node: TupleGetItem, block: _Block) -> _Value:
        value = self.atom(node.tuple_value)
        assert isinstance(value, _Fields)
        part: _Value = value.parts[node.index]
        return part

    def _if(self, node: If, block: _Block) -> _Value:
        block.flush()
        condition = self.plain(self.atom(node.cond))
        chosen = self.block(node.true_branch, block.backpropagator)
        other = self.block(node.false_branch, block.backpropagator)
        return self.bound(block, node, If(condition, chosen, other, span=node.span))

    def _match(self, node: Match, block: _Block) -> _Value:
        block.flush()
        data = self.expression(self.atom(node.data))
        clauses = []
        for clause in node.clauses:
            pattern = self.pattern(clause.lhs)
            clauses.append(Clause(pattern, self.block(clause.rhs, block.backpropagator)))
        return self.bound(block, node, Match(data, clauses, node.complete, span=node.span))

    def pattern(self, pattern: Pattern) -> Pattern:
        """A pattern for rewritten values."""
        if isinstance(pattern, PatternVar):
            variable = self.parameter(pattern.var)
            return PatternVar(variable)
        if isinstance(pattern, PatternConstructor):
            inner = [self.pattern(one) for one in pattern.patterns]
            return PatternConstructor(self.types.constructor(pattern.constructor), inner)
        if isinstance(pattern, PatternTuple):
            return PatternTuple([self.pattern(one) for one in pattern.patterns])
        return pattern

    def parameter(self, old: Var) -> Var:
        """The variable for rewritten values of a parameter."""
        variable = Var(old.name_hint, self.types.visit(old.checked_type))
        self.values[old] = self.unknown(variable, old.checked_type)
        return variable

    def _ref_create(self, node: RefCreate, block: _Block) -> _Value:
        return self.bound(block, node, RefCreate(self.expression(self.atom(node.value))))

    def _ref_read(self, node: RefRead, block: _Block) -> _Value:
        return self.bound(block, node, RefRead(self.expression(self.atom(node.ref))))

    def _ref_write(self, node: RefWrite, block: _Block) -> _Value:
        reference, value = self.expression(self.atom(node.ref)), self.expression(self.atom(node.value))
        return self.bound(block, node, RefWrite(reference, value))

    # Functions

    def function(self, fn: Function, attrs: dict[str, Any] | None = None) -> Function:
        parameters = [self.parameter(parameter) for parameter in fn.params]
        backpropagator = _Backpropagator(Var("backpropagator", BACKPROPAGATOR))
        body = self.block(fn.body, backpropagator)
        result = self.types.visit(fn.checked_type.ret_type)
        return Function(
            [*parameters, backpropagator.variable], body, result, fn.type_params, attrs, span=fn.span
        )

    def global_function(self, name: GlobalVar) -> GlobalVar:
        """The rewritten form of a function of the module, which is added to the module next to it."""
        known = self.globals.get(name.name_hint)
        if known is not None:
            return known
        assert self.mod is not None
        given = self.mod[name.name_hint]
        if not isinstance(given, Function):
            raise TilewrightError(f"@{name.name_hint} is not a graph-level function, it has no gradient")
        made = f"{name.name_hint}_grad"
        while made in self.mod and self.mod[made].attrs.get("gradient_of") != name.name_hint:
            made = f"{made}_"
        variable = self.mod.get_global_var(made) if made in self.mod else GlobalVar(made)
        self.globals[name.name_hint] = variable
        function = self.function(_prepared(given, self.mod), {"gradient_of": name.name_hint})
        self.mod[variable] = function
        return variable

    # Calls

    def _call(self, node: Call, block: _Block) -> _Value:
        arguments = [self.atom(argument) for argument in node.args]
        if isinstance(node.op, Op):
            return self.operator(node, node.op, arguments, block)
        if isinstance(node.op, Var) and node.op in self.segments:
            return self.segment(node, self.segments[node.op], arguments, block)
        type_args = [self.types.visit(one) for one in node.type_args]
        given = [self.expression(argument) for argument in arguments]
        if isinstance(node.op, Constructor):
            callee: RelayExpr = self.types.constructor(node.op)
        else:
            block.flush()
            callee = self.expression(self.atom(node.op))
            given.append(block.backpropagator())
        return self.bound(block, node, Call(callee, given, None, type_args, span=node.span))

    def operator(self, node: Call, op: Op, arguments: list[_Value], block: _Block) -> _Value:
        """A call of an operator, and what it leaves for the backward pass."""
        kind = node.checked_type
        if op.get_attr("TCallEffectKind") == CallEffectKind.ExprAnnotation and isinstance(
            arguments[0], _Whole
        ):
            return arguments[0]
        call = infer_expr(node.replace(args=tuple([self.plain(argument) for argument in arguments])))
        assert isinstance(call, Call)
        result = block.let("x", kind, call)
        if not carries_gradient(kind) or not any(self.is_active(argument) for argument in arguments):
            return self.without_gradient(result, kind)
        made = self.with_gradient(block, result, kind)

        def backward(within: _Block) -> None:
            gradients = operator_gradients(call, infer_expr(self.read(within, made)))
            known = _Known(call, result)
            for argument, gradient in zip(arguments, gradients, strict=True):
                if self.is_active(argument):
                    self.add(within, argument, known.visit(gradient))

        block.backward.append(backward)
        return made

    def segment(self, node: Call, function: Function, arguments: list[_Value], block: _Block) -> _Value:
        """The segment of a checkpoint: computed now without gradients, and again with them in the backward pass."""
        plain = [self.plain(argument) for argument in arguments]
        forward = with_fresh_variables(function.body, dict(zip(function.params, plain, strict=True)))
        result = block.let("x", node.checked_type, forward)
        if not carries_gradient(node.checked_type) or not any(self.is_active(one) for one in arguments):
            return self.without_gradient(result, node.checked_type)
        made = self.with_gradient(block, result, node.checked_type)

        def backward(within: _Block) -> None:
            again = infer_expr(with_fresh_variables(function))
            assert isinstance(again, Function)
            self.values.update(zip(again.params, arguments, strict=True))
            inner = _Block(within.backpropagator)
            outcome = self.run(inner, again.body)
            self.add(inner, outcome, self.read(inner, made))
            inner.run_backward(inner)
            within.lets += inner.lets

        block.backward.append(backward)
        return made


_RULES: dict[type, Callable[[_Reverse, Any, _Block], _Value]] = {
    Constant: _Reverse._constant,
    Tuple: _Reverse._tuple,
    TupleGetItem: _Reverse._tuple_getitem,
    If: _Reverse._if,
    Match: _Reverse._match,
    RefCreate: _Reverse._ref_create,
    RefRead: _Reverse._ref_read,
    RefWrite: _Reverse._ref_write,
    Call: _Reverse._call,
}


class _Plain(ExprMutator):
    """Takes the attributes of functions away: a fused function is one like any other."""

    def visit_function(self, fn: Function) -> RelayExpr:
        made = super().visit_function(fn)
        assert isinstance(made, Function)
        return made.replace(attrs=Function((), Tuple([])).attrs) if made.attrs.keys() else made


def _prepared(function: Function, mod: IRModule | None) -> Function:
    """The function in A-normal form, its checkpoints as functions, with types."""
    typed = infer_expr(_Plain().visit(function), mod)
    assert isinstance(typed, Function)
    made = infer_expr(ToANormalFormExpr(outline_checkpoints(typed)), mod)
    assert isinstance(made, Function)
    return made


def higher_order_gradient(function: Function, mod: IRModule | None = None) -> Function:
    """The function that gives the result of a typed function, and the gradients of its parameters. Functions of the
    module that it calls are added to the module in the form that leaves the backward pass behind."""
    kind = function.checked_type
    assert isinstance(kind, FuncType)
    check_differentiable(kind.arg_types, kind.ret_type)
    with recursion_room():
        prepared = _prepared(function, mod)
        reverse = _Reverse(mod)
        backpropagator = _Backpropagator(Var("backpropagator", BACKPROPAGATOR))
        block = _Block(backpropagator)
        parameters = [Var(one.name_hint, one.checked_type, one.span) for one in prepared.params]
        given = [
            reverse.with_gradient(block, one, kind)
            for one, kind in zip(parameters, kind.arg_types, strict=True)
        ]
        reverse.values.update(zip(prepared.params, given, strict=True))
        value = reverse.run(block, prepared.body)
        result = block.let("result", kind.ret_type, reverse.plain(value))
        reverse.add(block, value, filled_like("ones_like", result, kind.ret_type))
        block.run_backward(block)
        if backpropagator.used:
            nothing = RefCreate(Function([], Tuple([]), _UNIT))
            block.lets.insert(0, (backpropagator.variable, nothing))
            block.run(Call(RefRead(backpropagator.variable), []))
        gradients = [reverse.read(block, one) for one in given]
        body = block.close(Tuple([result, Tuple(gradients)]))
    return Function(
        parameters,
        body,
        gradient_type(kind.arg_types, kind.ret_type),
        function.type_params,
        span=function.span,
    )
