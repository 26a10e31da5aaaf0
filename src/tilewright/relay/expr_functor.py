"""Visiting and rewriting graph-level expressions.

A subclass defines ``visit_<node>`` for the nodes that it handles. Each node is visited once (``memo_map`` caches the
results), so that a traversal is linear in the size of the graph. Calls go from Python frame to Python frame and the
first one makes room for the recursion: depth costs only heap.

Chains of ``Let``, which programs in A-normal form have by the thousand, are handled in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.op import Op
from tilewright.ir.type import Type
from tilewright.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    bound_variables,
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
from tilewright.relay.function import Function
from tilewright.support.recursion import recursion_room


class ExprFunctor(Functor):
    """Dispatch with a memory of results. What a subclass has no method for goes to ``visit_default``: an error here."""

    def __init__(self) -> None:
        self.memo_map: dict[RelayExpr, Any] = {}
        self._entered = False

    def visit(self, expr: RelayExpr) -> Any:
        """The result for an expression, computed once."""
        memo = self.memo_map
        if expr in memo:
            return memo[expr]
        if self._entered:
            handler = self._handlers.get(type(expr)) or self._handler(type(expr))
            result = handler(self, expr)
        else:
            self._entered = True
            try:
                with recursion_room():
                    result = self.visit(expr)
            finally:
                self._entered = False
        memo[expr] = result
        return result

    def visit_default(self, expr: RelayExpr) -> Any:
        """Called for nodes without a method."""
        raise NotImplementedError(f"{type(self).__name__} has no visit_{type(expr).node_kind}")

    def visit_type(self, typ: Type) -> Type:
        """Visits a type that occurs in an expression."""
        return typ

    def visit_function(self, _: Function) -> Any:
        """A function."""
        return self.visit_default(_)

    def visit_let(self, _: Let) -> Any:
        """A binding."""
        return self.visit_default(_)

    def visit_call(self, _: Call) -> Any:
        """A call."""
        return self.visit_default(_)

    def visit_var(self, _: Var) -> Any:
        """A local variable."""
        return self.visit_default(_)

    def visit_if(self, _: If) -> Any:
        """A choice."""
        return self.visit_default(_)

    def visit_tuple(self, _: Tuple) -> Any:
        """A tuple."""
        return self.visit_default(_)

    def visit_tuple_getitem(self, _: TupleGetItem) -> Any:
        """A field of a tuple."""
        return self.visit_default(_)

    def visit_global_var(self, _: GlobalVar) -> Any:
        """A function's name."""
        return self.visit_default(_)

    def visit_op(self, _: Op) -> Any:
        """An operator."""
        return self.visit_default(_)

    def visit_constant(self, _: Constant) -> Any:
        """A constant."""
        return self.visit_default(_)

    def visit_ref_create(self, _: RefCreate) -> Any:
        """A new reference."""
        return self.visit_default(_)

    def visit_ref_write(self, _: RefWrite) -> Any:
        """A write to a reference."""
        return self.visit_default(_)

    def visit_ref_read(self, _: RefRead) -> Any:
        """A read of a reference."""
        return self.visit_default(_)

    def visit_constructor(self, _: Constructor) -> Any:
        """A constructor."""
        return self.visit_default(_)

    def visit_match(self, _: Match) -> Any:
        """A choice by patterns."""
        return self.visit_default(_)


class ExprVisitor(ExprFunctor):
    """Looks at every node once, what it is made of first."""

    def visit_default(self, expr: Any) -> None:
        """Leaves have nothing below them."""

    def visit_tuple(self, tup: Tuple) -> None:
        """Fields in order."""
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call: Call) -> None:
        """What is called, then the arguments."""
        self.visit(call.op)
        for argument in call.args:
            self.visit(argument)

    def visit_var(self, var: Var) -> None:
        """A use, or the definition where a function or pattern is visited."""

    def visit_let(self, let: Let) -> None:
        """Variable, value, body; a chain in a loop."""
        current: RelayExpr = let
        while isinstance(current, Let):
            self.visit(current.var)
            self.visit(current.value)
            self.memo_map[current] = None
            current = current.body
        self.visit(current)

    def visit_function(self, fn: Function) -> None:
        """Parameters, then the body."""
        for parameter in fn.params:
            self.visit(parameter)
        self.visit(fn.body)

    def visit_if(self, i: If) -> None:
        """Condition and both branches."""
        self.visit(i.cond)
        self.visit(i.true_branch)
        self.visit(i.false_branch)

    def visit_global_var(self, gv: GlobalVar) -> None:
        """A function's name."""

    def visit_constructor(self, c: Constructor) -> None:
        """A constructor."""

    def visit_op(self, op: Op) -> None:
        """An operator."""

    def visit_constant(self, const: Constant) -> None:
        """A constant."""

    def visit_ref_create(self, r: RefCreate) -> None:
        """The value."""
        self.visit(r.value)

    def visit_ref_read(self, r: RefRead) -> None:
        """The reference."""
        self.visit(r.ref)

    def visit_ref_write(self, r: RefWrite) -> None:
        """The reference, then the value."""
        self.visit(r.ref)
        self.visit(r.value)

    def visit_tuple_getitem(self, t: TupleGetItem) -> None:
        """The tuple."""
        self.visit(t.tuple_value)

    def visit_match(self, m: Match) -> None:
        """The value, then each clause with the variables that it binds."""
        self.visit(m.data)
        for clause in m.clauses:
            for variable in bound_variables(clause.lhs):
                self.visit(variable)
            self.visit(clause.rhs)


class ValueFunctor(ExprFunctor):
    """A functor that computes a value of each expression; a bound variable has the value of what it is bound to."""

    def visit_let(self, let: Let) -> Any:
        """The body, with the variable's value in the memo."""
        current: RelayExpr = let
        while isinstance(current, Let):
            self.memo_map[current.var] = self.visit(current.value)
            current = current.body
        return self.visit(current)


def let_block(
    bindings: Sequence[tuple[Let, RelayExpr]], body: RelayExpr, memo: dict[RelayExpr, Any] | None = None
) -> RelayExpr:
    """Bindings, outermost first, with new values around a new body; what has not changed stays the same object.

    Each binding's replacement is noted in ``memo`` if that is given.
    """
    for old, value in reversed(bindings):
        same = value is old.value and body is old.body
        body = old if same else old.replace(value=value, body=body)
        if memo is not None:
            memo[old] = body
    return body


class ExprMutator(ExprFunctor):
    """Rewrites bottom-up; a node whose parts did not change stays the same object, with its type."""

    def visit_default(self, expr: Any) -> Any:
        """Leaves stay."""
        return expr

    def visit_function(self, fn: Function) -> RelayExpr:
        """New parameters and a new body."""
        params = tuple([self.visit(parameter) for parameter in fn.params])
        body = self.visit(fn.body)
        if body is fn.body and all(new is old for new, old in zip(params, fn.params, strict=True)):
            return fn
        return fn.replace(params=params, body=body)

    def visit_let(self, let: Let) -> RelayExpr:
        """Variables and values from the outside in, then the body; the chain is rebuilt from the inside out."""
        chain: list[tuple[Let, Any, Any]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            chain.append((current, self.visit(current.var), self.visit(current.value)))
            current = current.body
        body = self.visit(current)
        for old, variable, value in reversed(chain):
            if variable is old.var and value is old.value and body is old.body:
                body = old
            else:
                body = old.replace(var=variable, value=value, body=body)
            self.memo_map[old] = body
        return body  # type: ignore[no-any-return]

    def visit_call(self, call: Call) -> RelayExpr:
        """New callee and arguments."""
        return call.map_children(self.visit)

    def visit_var(self, var: Var) -> RelayExpr:
        """Variables stay."""
        return var

    def visit_global_id(self, global_var: GlobalVar) -> RelayExpr:
        """Names stay; programs call it, but no traversal does, which call ``visit_global_var``."""
        return global_var

    def visit_if(self, ite: If) -> RelayExpr:
        """New condition and branches."""
        return ite.map_children(self.visit)

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        """New fields."""
        return tup.map_children(self.visit)

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        """A new tuple."""
        return op.map_children(self.visit)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        """Names stay."""
        return gvar

    def visit_op(self, op: Op) -> RelayExpr:
        """Operators stay."""
        return op

    def visit_constant(self, const: Constant) -> RelayExpr:
        """Constants stay."""
        return const

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        """Constructors stay."""
        return con

    def visit_match(self, m: Match) -> RelayExpr:
        """A new value and new clauses."""
        data = self.visit(m.data)
        clauses = tuple([self.visit_clause(clause) for clause in m.clauses])
        if data is m.data and all(new is old for new, old in zip(clauses, m.clauses, strict=True)):
            return m
        return m.replace(data=data, clauses=clauses)

    def visit_clause(self, clause: Clause) -> Clause:
        """A new pattern and a new result."""
        pattern = self.visit_pattern(clause.lhs)
        result = self.visit(clause.rhs)
        if pattern is clause.lhs and result is clause.rhs:
            return clause
        return Clause(pattern, result)

    def visit_pattern(self, pattern: Pattern) -> Pattern:
        """The pattern with new variables."""
        if isinstance(pattern, PatternVar):
            variable = self.visit(pattern.var)
            return pattern if variable is pattern.var else PatternVar(variable)
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            return pattern.map_children(self.visit_pattern)
        return pattern

    def visit_ref_create(self, r: RefCreate) -> RelayExpr:
        """A new value."""
        return r.map_children(self.visit)

    def visit_ref_write(self, r: RefWrite) -> RelayExpr:
        """A new reference and value."""
        return r.map_children(self.visit)

    def visit_ref_read(self, r: RefRead) -> RelayExpr:
        """A new reference."""
        return r.map_children(self.visit)


class CallRewriter(ExprMutator):
    """A mutator whose subclasses give ``rewrite_call(old, new)``: the call itself and the call with rewritten
    parts."""

    def rewrite_call(self, old: Call, new: Call) -> RelayExpr:
        """The replacement of the call."""
        raise NotImplementedError

    def visit_call(self, call: Call) -> RelayExpr:
        """Rewritten parts first."""
        return self.rewrite_call(call, call.map_children(self.visit))


class _Bind(ExprMutator):
    def __init__(self, values: Mapping[Var, RelayExpr]) -> None:
        super().__init__()
        for variable, value in values.items():
            self.memo_map[variable] = value

    def visit_function(self, fn: Function) -> RelayExpr:
        body = self.visit(fn.body)
        return fn if body is fn.body else fn.replace(body=body)

    def visit_let(self, let: Let) -> RelayExpr:
        # The bound variable is a definition: it stays even where a value for the name is given.
        chain: list[tuple[Let, Any]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            chain.append((current, self.visit(current.value)))
            current = current.body
        return let_block(chain, self.visit(current), self.memo_map)


def substitute(expr: RelayExpr, values: Mapping[Var, RelayExpr]) -> RelayExpr:
    """The expression with free variables replaced. Variables are unique, so nothing is captured."""
    return _Bind(values).visit(expr) if values else expr


def bind(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """The expression with variables replaced. Of a function, the parameters that get a value are parameters no more."""
    if not isinstance(expr, Function):
        return substitute(expr, binds)
    params = tuple(parameter for parameter in expr.params if parameter not in binds)
    body = substitute(expr.body, binds)
    if body is expr.body and len(params) == len(expr.params):
        return expr
    return expr.replace(params=params, body=body, ret_type=expr.ret_type)


def post_order_visit(expr: RelayExpr, fvisit: Callable[[Any], None]) -> None:
    """Call ``fvisit`` on every node once, after what it is made of."""
    _PostOrder(fvisit).visit(expr)


class _PostOrder(ExprVisitor):
    def __init__(self, function: Callable[[Any], None]) -> None:
        super().__init__()
        self.function = function

    def visit(self, expr: RelayExpr) -> None:
        if expr not in self.memo_map:
            # The first visit makes room for recursion and comes here again.
            inner = self._entered
            super().visit(expr)
            if inner:
                self.function(expr)

    def visit_let(self, let: Let) -> None:
        chain: list[Let] = []
        current: RelayExpr = let
        while isinstance(current, Let):
            chain.append(current)
            self.visit(current.var)
            self.visit(current.value)
            current = current.body
        self.visit(current)
        for inner in reversed(chain[1:]):
            self.memo_map[inner] = None
            self.function(inner)
