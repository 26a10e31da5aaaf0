"""Helpers for passes that rewrite calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import type_of
from tilewright.relay.op.shapes import Shape, dims
from tilewright.support.errors import InternalError
from tilewright.support.span import span_scope

Rule = Callable[[Call, Call], RelayExpr | None]
"""(the call as it was, the call with rewritten arguments) to what replaces it; None to leave it."""

Constants = tuple[int, ...]
"""The extents of a tensor of which all are known."""


class OperatorRewriter(ExprMutator):
    """Rewrites calls of operators, arguments first, by rules.

    A rewritten expression means what the old one did, so it has the old one's type before inference runs again. What a
    rule makes has the span of the call that it replaces. Primitive functions are kernels already and stay.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__()
        self.rules = rules

    def visit(self, expr: RelayExpr) -> Any:
        """The rewritten expression, with its type."""
        made = super().visit(expr)
        if made is not expr:
            keep_type(expr, made)
        return made

    def rule_of(self, op: Op) -> Rule | None:
        """The rule for an operator, if there is one."""
        return self.rules.get(op.name)

    def visit_call(self, call: Call) -> RelayExpr:
        """Rewritten arguments, then the rule of the operator."""
        new = call.map_children(self.visit)
        rule = self.rule_of(call.op) if isinstance(call.op, Op) else None
        if rule is None:
            return new
        if new is not call:
            keep_type(call, new)
        with span_scope(call.span):
            made = rule(call, new)
        return new if made is None else made

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions stay."""
        return fn if fn.is_primitive else super().visit_function(fn)


class FieldsOfTuples(OperatorRewriter):
    """Resolves fields of literal tuples immediately: what is left after an operator that returns a tuple was
    replaced by its parts."""

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        """The field itself where the tuple is known."""
        value = self.visit(op.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[op.index]
        return op if value is op.tuple_value else op.replace(tuple_value=value)


def keep_type(old: RelayExpr, new: RelayExpr) -> None:
    """Give an expression that means the same as another, and has no type yet, the other's."""
    found = getattr(old, "_checked_type_", None)
    if found is not None and getattr(new, "_checked_type_", None) is None:
        object.__setattr__(new, "_checked_type_", found)


def made_type(expr: RelayExpr) -> Type:
    """The type of an expression that a pass built from typed ones, inferred once and cached."""
    found: Type | None = getattr(expr, "_checked_type_", None)
    if found is not None:
        return found
    if isinstance(expr, Constant):
        found = expr.tensor_type
    elif isinstance(expr, Var):
        found = expr.type_annotation
    elif isinstance(expr, Tuple):
        found = TupleType([made_type(field) for field in expr.fields])
    elif isinstance(expr, TupleGetItem):
        whole = made_type(expr.tuple_value)
        found = whole.fields[expr.index] if isinstance(whole, TupleType) else None
    elif isinstance(expr, Let):
        inner: RelayExpr = expr
        while isinstance(inner, Let):
            inner = inner.body
        found = made_type(inner)
    elif isinstance(expr, Call) and isinstance(expr.op, Op):
        _, relation = expr.op.get_attr("TypeRelation")
        found = relation([made_type(argument) for argument in expr.args], expr.attrs)
    if found is None:
        return type_of(expr)
    object.__setattr__(expr, "_checked_type_", found)
    return found


def tensor_of(expr: RelayExpr) -> TensorType:
    """The type of an expression that is known to be a tensor."""
    found = made_type(expr)
    if not isinstance(found, TensorType):
        raise InternalError(f"a tensor is expected here, not a value of type {found}")
    return found


def shape_of(expr: RelayExpr) -> Shape:
    """The shape of a tensor, constants as Python ints."""
    return dims(tensor_of(expr))


def constant_shape(expr: RelayExpr) -> Constants | None:
    """The shape of a tensor whose extents are all constant and not zero."""
    kind = expr.checked_type
    if not isinstance(kind, TensorType):
        return None
    extents = tuple(extent for extent in dims(kind) if isinstance(extent, int) and extent > 0)
    return extents if len(extents) == len(kind.shape) else None


def is_call(expr: RelayExpr, *names: str) -> bool:
    """True if the expression calls one of these operators."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def scalar_value(expr: RelayExpr) -> Any:
    """The number that a constant has in every element; None where there is none."""
    if not isinstance(expr, Constant) or 0 in expr.data.shape:
        return None
    values = expr.data.numpy()
    first = values.flat[0]
    return first.item() if (values == first).all() else None


def rewritten(rewriter: OperatorRewriter, func: Function) -> Function:
    """The function after a rewriter; parameters and declared types stay."""
    made = rewriter.visit(func.body)
    return func if made is func.body else func.replace(body=made)


def uses_of(root: RelayExpr) -> dict[RelayExpr, int]:
    """How often each expression is used, each place where it occurs counted once."""
    counts: dict[Any, int] = {root: 1}
    stack: list[Any] = [root]
    while stack:
        for child in stack.pop().children():
            if child in counts:
                counts[child] += 1
            else:
                counts[child] = 1
                stack.append(child)
    return counts


def constant_expressions(root: RelayExpr) -> set[Any]:
    """The expressions below a root that depend on no variable and call no function: FoldConstant can compute them."""
    found: set[Any] = set()
    for expr in post_order(root):
        if isinstance(expr, (Constant, Op)) or (
            isinstance(expr, (Call, Tuple, TupleGetItem)) and all(child in found for child in expr.children())
        ):
            found.add(expr)
    return found
