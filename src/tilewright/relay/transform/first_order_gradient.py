"""FirstOrderGradient: the gradients of programs that are graphs of operators.

Lets and function calls are resolved first, which leaves a graph of calls, tuples and fields. A traversal from the
result to the parameters accumulates the gradient of each value and evaluates each operator's gradient for its
arguments. The result is a graph again, in which the backward part shares what the forward part computed.

What leads to a ``checkpoint`` is recomputed for the backward part: back to parameters, constants, other checkpoints,
and values that are also used elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import FuncType, TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.op.calls import call as call_operator
from tilewright.relay.transform.lib.checkpoint_segments import checkpoint_owners, is_checkpoint
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.gradient_rules import (
    CHECKPOINT,
    carries_gradient,
    check_differentiable,
    field_of,
    filled_like,
    gradient_type,
    operator_gradients,
)
from tilewright.relay.transform.lib.straight_line import straight_line
from tilewright.support.recursion import recursion_room

Adjoint = Any
"""The gradient of a value so far: an expression, a list with one for each field of a tuple, None for zero."""


class _Backward:
    """The gradients of all values of a graph."""

    def __init__(self, order: list[Any]) -> None:
        self.order = order
        self.adjoints: dict[RelayExpr, Adjoint] = {}
        self.active: set[RelayExpr] = set()
        for node in order:
            if isinstance(node, Op) or not carries_gradient(node.checked_type):
                continue
            if isinstance(node, Var) or any(child in self.active for child in node.children()):
                self.active.add(node)
        self.again = _computed_again(order)

    def run(self, body: RelayExpr) -> None:
        """From the result, whose gradient is one, to the parameters."""
        self.add(body, infer_expr(filled_like("ones_like", body, body.checked_type)))
        for node in reversed(self.order):
            adjoint = self.adjoints.get(node)
            if adjoint is None or isinstance(node, Var):
                continue
            if isinstance(node, Tuple):
                for field, part in zip(node.fields, adjoint, strict=True):
                    self._add_adjoint(field, part)
            elif isinstance(node, TupleGetItem):
                fields = [None] * len(node.tuple_value.checked_type.fields)
                fields[node.index] = adjoint
                self._add_adjoint(node.tuple_value, fields)
            elif isinstance(node, Call):
                self._add_call(node, adjoint)

    def _add_call(self, call: Call, adjoint: Adjoint) -> None:
        seen = self.again.get(call, call)
        gradient = infer_expr(_expression(adjoint, seen, call.checked_type))
        if is_checkpoint(call):
            self.add(call.args[0], gradient)
            return
        for argument, one in zip(call.args, operator_gradients(seen, gradient), strict=True):
            self.add(argument, one)

    def add(self, value: RelayExpr, gradient: RelayExpr) -> None:
        """One more gradient of a value, as an expression of its type."""
        if value in self.active:
            self.adjoints[value] = _sum(self.adjoints.get(value), gradient, value.checked_type)

    def _add_adjoint(self, value: RelayExpr, adjoint: Adjoint) -> None:
        if adjoint is not None and value in self.active:
            self.adjoints[value] = _sum(self.adjoints.get(value), adjoint, value.checked_type)

    def gradient(self, parameter: Var) -> RelayExpr:
        """The whole gradient of a parameter."""
        return _expression(self.adjoints.get(parameter), parameter, parameter.checked_type)


def _sum(known: Adjoint, more: Adjoint, kind: Type) -> Adjoint:
    if more is None or not carries_gradient(kind):
        return known
    if isinstance(kind, TupleType):
        before = known if known is not None else [None] * len(kind.fields)
        return [
            _sum(one, more[index] if isinstance(more, list) else field_of(more, index), field)
            for index, (one, field) in enumerate(zip(before, kind.fields, strict=True))
        ]
    return more if known is None else infer_expr(call_operator("add", known, more))


def _expression(adjoint: Adjoint, value: RelayExpr, kind: Type) -> RelayExpr:
    """A gradient as an expression; where nothing was added, zeros in the shape of the value."""
    if adjoint is None:
        return filled_like("zeros_like", value, kind)
    if isinstance(kind, TupleType):
        return Tuple(
            [
                _expression(part, field_of(value, index), field)
                for index, (part, field) in enumerate(zip(adjoint, kind.fields, strict=True))
            ]
        )
    assert isinstance(adjoint, RelayExpr)
    return adjoint


def _computed_again(order: list[Any]) -> dict[RelayExpr, Any]:
    """For every value between checkpoints, the expression that computes it a second time."""
    owners = checkpoint_owners(order)
    made: dict[RelayExpr, Any] = {}
    entries: dict[tuple[Call, RelayExpr], RelayExpr] = {}
    for node in order:
        owner = owners.get(node)
        if owner is None:
            continue

        def again(child: Any, owner: Call = owner) -> Any:
            if owners.get(child) is owner or isinstance(child, Op):
                return made.get(child, child)
            # The mark keeps the two computations from being merged.
            return entries.setdefault((owner, child), call_operator(CHECKPOINT, child))

        made[node] = infer_expr(node.map_children(again))
    return made


def first_order_gradient(function: Function, mod: IRModule | None = None) -> Function:
    """The function that gives the result of a typed function, and the gradients of its parameters."""
    kind = function.checked_type
    assert isinstance(kind, FuncType)
    check_differentiable(kind.arg_types, kind.ret_type)
    with recursion_room():
        body = infer_expr(straight_line(function, mod), mod)
        backward = _Backward(post_order(body))
        backward.run(body)
        gradients = [backward.gradient(parameter) for parameter in function.params]
    return Function(
        function.params,
        Tuple([body, Tuple(gradients)]),
        gradient_type(kind.arg_types, kind.ret_type),
        function.type_params,
        span=function.span,
    )


@dataclass
class FirstOrderGradient(FunctionPass):
    """Every function of the module gives its result and the gradients of its parameters."""

    name = "FirstOrderGradient"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The gradient of one function; functions that it calls are computed within."""
        return first_order_gradient(func, mod)
