"""Changing the floating-point type in which a program computes, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.relay.adt import Clause, Match
from tilewright.relay.expr import Call, Constant, If, Let, RefCreate, RefWrite, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.mixed_precision_lists import CATEGORIES, Category
from tilewright.relay.transform.lib.rewriting import keep_type, made_type
from tilewright.support.span import span_scope

ACCUMULATED = "float32"
"""The type in which products are accumulated."""


class PrecisionChanger(ExprMutator):
    """Rewrites; an expression of the type ``given`` may come out in ``wanted``, all others keep their types."""

    def __init__(self, given: str, wanted: str) -> None:
        super().__init__()
        self.given, self.wanted = given, wanted
        self.unknown: dict[str, None] = {}
        self.casts: dict[tuple[RelayExpr, str], RelayExpr] = {}
        self.source: dict[RelayExpr, RelayExpr] = {}
        """The arguments of the casts that this pass created."""

    # Types

    def as_dtype(self, expr: RelayExpr, dtype: str) -> RelayExpr:
        """A tensor in a type; a conversion is made once, and one that was made is not undone by another."""
        if _dtype(expr) == dtype:
            return expr
        source = self.source.get(expr)
        if source is not None and _dtype(source) == dtype:
            return source
        found = self.casts.get((expr, dtype))
        if found is None:
            with span_scope(getattr(expr, "span", None)):
                found = call("cast", expr, dtype=dtype)
            self.casts[expr, dtype] = found
            self.source[found] = expr
        return found

    def as_type(self, expr: RelayExpr, wanted: Type) -> RelayExpr:
        """A value whose tensors have the element types that a type says."""
        if isinstance(wanted, TensorType):
            return self.as_dtype(expr, str(wanted.dtype))
        if not isinstance(wanted, TupleType) or _element_types(made_type(expr)) == _element_types(wanted):
            return expr
        return Tuple(
            [self.as_type(field, each) for field, each in zip(_fields(expr), wanted.fields, strict=True)]
        )

    def changed(self, expr: RelayExpr) -> RelayExpr:
        """A value with all its tensors of the given type in the wanted one."""
        found = made_type(expr)
        if isinstance(found, TensorType):
            return self.as_dtype(expr, self.wanted) if str(found.dtype) == self.given else expr
        if isinstance(found, TupleType) and self.given in _element_types(found):
            return Tuple([self.changed(field) for field in _fields(expr)])
        return expr

    # Calls

    def visit_call(self, call: Call) -> RelayExpr:
        """By the category of the operator."""
        arguments = [self.visit(argument) for argument in call.args]
        if not isinstance(call.op, Op):
            callee = self.visit(call.op)
            return self._rebuilt(call, callee, self._as_before(call, arguments), call.attrs)
        category, accumulated, result = self.category(call, call.op)
        if category == Category.FOLLOW and not self._follows(arguments):
            category = Category.NEVER
        if not {self.given, self.wanted} & {
            dtype for one in arguments for dtype in _element_types(made_type(one))
        }:
            category = Category.NEVER
        if category == Category.NEVER:
            return self._rebuilt(call, call.op, self._as_before(call, arguments), call.attrs)
        attrs: Any = call.attrs
        if getattr(attrs, "out_dtype", None) in ("", self.given):
            attrs = attrs.replace(out_dtype=accumulated)
        arguments = [self.changed(argument) for argument in arguments]
        made = self._rebuilt(call, call.op, arguments, attrs)
        found = made_type(made)
        if isinstance(found, TensorType) and str(found.dtype) == accumulated:
            return self.as_dtype(made, result)
        return made

    def _rebuilt(self, old: Call, op: RelayExpr, arguments: Sequence[RelayExpr], attrs: Any) -> RelayExpr:
        same = op is old.op and attrs is old.attrs
        if same and all(new is argument for new, argument in zip(arguments, old.args, strict=True)):
            return old
        made = old.replace(op=op, args=tuple(arguments), attrs=attrs)
        if not isinstance(op, Op):
            keep_type(old, made)
        return made

    def _as_before(self, old: Call, arguments: Sequence[RelayExpr]) -> list[RelayExpr]:
        return [
            self.as_type(new, made_type(argument)) for new, argument in zip(arguments, old.args, strict=True)
        ]

    def category(self, call: Call, op: Op) -> tuple[Category, str, str]:
        """The category, the accumulation type, and the result type."""
        rule = op.get_attr("FTVMMixedPrecisionConversionType")
        if rule is not None:
            category, accumulated, result = rule(call, self.wanted)
            return Category(int(category)), str(accumulated), str(result)
        found = CATEGORIES.get(op.name)
        if found is None:
            self.unknown[op.name] = None
            found = Category.NEVER
        return found, ACCUMULATED if hasattr(call.attrs, "out_dtype") else self.wanted, self.wanted

    def _follows(self, arguments: Sequence[RelayExpr]) -> bool:
        """True if tensors come in the wanted type, but for variables and constants, which are cheap to convert."""
        leaves = [leaf for argument in arguments for leaf in _leaves(argument)]
        changed = [self.wanted in _element_types(made_type(leaf)) for leaf in leaves]
        others = [
            self.given in _element_types(made_type(leaf)) and not isinstance(leaf, (Var, Constant))
            for leaf in leaves
        ]
        return any(changed) and not any(others)

    # Other expressions

    def visit_let(self, let: Let) -> RelayExpr:
        """A variable has the type that its value has now."""
        chain: list[tuple[Let, Var, RelayExpr]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            value = self.visit(current.value)
            variable = current.var
            if not isinstance(value, Function) and made_type(value) != made_type(variable):
                variable = Var(variable.name_hint, made_type(value), variable.span)
            self.memo_map[current.var] = variable
            chain.append((current, variable, value))
            current = current.body
        body = self.visit(current)
        for old, variable, value in reversed(chain):
            if variable is not old.var or value is not old.value or body is not old.body:
                body = old.replace(var=variable, value=value, body=body)
            else:
                body = old
            self.memo_map[old] = body
        return body  # type: ignore[no-any-return]

    def visit_if(self, ite: If) -> RelayExpr:
        """Both branches have the type that they had."""
        kind = made_type(ite)
        branches = [self.as_type(self.visit(each), kind) for each in (ite.true_branch, ite.false_branch)]
        condition = self.visit(ite.cond)
        if condition is ite.cond and branches[0] is ite.true_branch and branches[1] is ite.false_branch:
            return ite
        made = ite.replace(cond=condition, true_branch=branches[0], false_branch=branches[1])
        keep_type(ite, made)
        return made

    def visit_match(self, m: Match) -> RelayExpr:
        """The clauses give what they gave."""
        kind = made_type(m)
        data = self.visit(m.data)
        clauses = [Clause(one.lhs, self.as_type(self.visit(one.rhs), kind)) for one in m.clauses]
        if data is m.data and all(new.rhs is old.rhs for new, old in zip(clauses, m.clauses, strict=True)):
            return m
        made = m.replace(data=data, clauses=tuple(clauses))
        keep_type(m, made)
        return made

    def visit_ref_create(self, r: RefCreate) -> RelayExpr:
        """References hold what they held."""
        value = self.as_type(self.visit(r.value), made_type(r.value))
        return r if value is r.value else r.replace(value=value)

    def visit_ref_write(self, r: RefWrite) -> RelayExpr:
        """References hold what they held."""
        reference = self.visit(r.ref)
        value = self.as_type(self.visit(r.value), made_type(r.value))
        return r if reference is r.ref and value is r.value else r.replace(ref=reference, value=value)

    def visit_function(self, fn: Function) -> RelayExpr:
        """A function within gives what it gave."""
        kind = made_type(fn)
        if fn.is_primitive or not isinstance(kind, FuncType):
            return fn
        body = self.as_type(self.visit(fn.body), kind.ret_type)
        if body is fn.body:
            return fn
        made = fn.replace(body=body)
        keep_type(fn, made)
        return made


def _dtype(expr: RelayExpr) -> str:
    found = made_type(expr)
    return str(found.dtype) if isinstance(found, TensorType) else ""


def _element_types(kind: Type) -> tuple[str, ...]:
    if isinstance(kind, TupleType):
        return tuple(dtype for field in kind.fields for dtype in _element_types(field))
    return (str(kind.dtype),) if isinstance(kind, TensorType) else ()


def _fields(expr: RelayExpr) -> list[RelayExpr]:
    if isinstance(expr, Tuple):
        return list(expr.fields)
    kind = made_type(expr)
    assert isinstance(kind, TupleType)
    return [TupleGetItem(expr, position) for position in range(len(kind.fields))]


def _leaves(expr: RelayExpr) -> list[RelayExpr]:
    return [leaf for field in expr.fields for leaf in _leaves(field)] if isinstance(expr, Tuple) else [expr]
