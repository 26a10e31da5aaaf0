"""Operator gradients for both modes of ``gradient``, and the values that carry gradients.

Gradients flow only through floating-point tensors: what is computed from other types, or has another type, has none. A
gradient has the type of the value that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.infer import infer_expr
from tilewright.relay.op.calls import call as call_operator
from tilewright.support.errors import OpNotImplemented, TilewrightError
from tilewright.support.span import span_scope

CHECKPOINT = "annotation.checkpoint"


def carries_gradient(kind: Type) -> bool:
    """True if a value of this type has, or holds, floating-point numbers."""
    if isinstance(kind, TupleType):
        return any(carries_gradient(field) for field in kind.fields)
    return isinstance(kind, TensorType) and not kind.dtype.is_integral


def is_made_of_tensors(kind: Type) -> bool:
    """True for tensors, and for tuples of them."""
    if isinstance(kind, TupleType):
        return all(is_made_of_tensors(field) for field in kind.fields)
    return isinstance(kind, TensorType)


def field_of(value: RelayExpr, index: int) -> RelayExpr:
    """A field of a tuple, taken at once where the tuple is written out."""
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def filled_like(operator: str, value: RelayExpr, kind: Type) -> RelayExpr:
    """Zeros or ones ("zeros_like", "ones_like") in place of every tensor of a value."""
    if isinstance(kind, TupleType):
        fields = enumerate(kind.fields)
        return Tuple([filled_like(operator, field_of(value, index), field) for index, field in fields])
    return call_operator(operator, value)


def operator_gradients(call: Call, gradient: RelayExpr) -> list[RelayExpr]:
    """The gradients of the arguments of a typed call, typed, from that of its result."""
    op = call.op
    assert isinstance(op, Op)
    rule = op.get_attr("FPrimalGradient")
    if rule is None:
        raise OpNotImplemented(
            f"operator {op.name} has no gradient; give it one with relay.op.register_gradient", span=call.span
        )
    with span_scope(call.span):
        made = list(rule(call, gradient))
    if len(made) != len(call.args):
        raise TilewrightError(
            f"the gradient of {op.name} gives {len(made)} gradients for {len(call.args)} arguments",
            span=call.span,
        )
    typed = []
    for position, (one, argument) in enumerate(zip(made, call.args, strict=True)):
        found = infer_expr(one)
        expected = argument.checked_type
        if carries_gradient(expected) and found.checked_type != expected:
            if not is_dynamic(found.checked_type) and not is_dynamic(expected):
                raise TilewrightError(
                    f"the gradient of {op.name} for argument {position} has type {found.checked_type}, "
                    f"the argument {expected}",
                    span=call.span,
                )
        typed.append(found)
    return typed


def gradient_type(params: Sequence[Type], result: Type) -> TupleType:
    """The result type of the gradient of a function: the function's result, and one gradient per parameter."""
    return TupleType([result, TupleType(tuple(params))])


def check_differentiable(params: Sequence[Type], result: Type) -> None:
    """Gradients are taken of tensors, with respect to tensors."""
    for what, kind in (*[("a parameter", one) for one in params], ("the result", result)):
        if not is_made_of_tensors(kind):
            raise TilewrightError(
                f"gradients are taken of functions from tensors to tensors, and of tuples of them: {what} of this "
                f"function has type {kind}"
            )
