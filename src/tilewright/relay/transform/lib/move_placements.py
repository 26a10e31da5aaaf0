"""Moves ``on_device`` to where it says most, before devices are planned.

An ``on_device`` without ``is_fixed`` leaves open where its result is used. At the end of a function, and as the value
of a variable, nothing is gained by that: there it is fixed. Of a projected tuple, the field is annotated and not the
tuple, so that one tensor is copied and not all.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Let, TupleGetItem
from tilewright.relay.expr_functor import ExprMutator, let_block
from tilewright.relay.function import Function
from tilewright.relay.op.annotation.annotation import on_device
from tilewright.support.span import span_scope


def is_on_device(expr: Any) -> bool:
    """True for an annotation."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "on_device"


def _is_open(expr: Any) -> bool:
    return is_on_device(expr) and not expr.attrs.is_fixed


def _fixed(expr: Any) -> RelayExpr:
    """The annotation, fixed if it was open; anything else as it is."""
    if not _is_open(expr):
        return expr  # type: ignore[no-any-return]
    with span_scope(expr.span):
        return on_device(expr.args[0], int(expr.attrs.device_type), is_fixed=True)


class MovePlacements(ExprMutator):
    """Rewrites the annotations of a function and of those inside it."""

    def visit_function(self, fn: Function) -> RelayExpr:
        """The end of a function."""
        if fn.is_primitive:
            return fn
        body = _fixed(self.visit(fn.body))
        return fn if body is fn.body else fn.replace(body=body)

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        """A field of an annotated tuple."""
        value: Any = self.visit(op.tuple_value)
        if _is_open(value):
            with span_scope(op.span):
                return on_device(TupleGetItem(value.args[0], op.index), int(value.attrs.device_type))
        return op if value is op.tuple_value else op.replace(tuple_value=value)

    def visit_let(self, let: Let) -> RelayExpr:
        """The values of variables, and the end of the block, which is where its result is annotated."""
        chain: list[tuple[Let, RelayExpr]] = []
        current: RelayExpr = let
        while isinstance(current, Let) and current not in self.memo_map:
            chain.append((current, _fixed(self.visit(current.value))))
            current = current.body
        body: Any = self.visit(current)
        annotation = body if _is_open(body) else None
        body = annotation.args[0] if annotation is not None else body
        body = let_block(chain, body)
        if annotation is not None:
            with span_scope(annotation.span):
                body = on_device(body, int(annotation.attrs.device_type))
        return body  # type: ignore[no-any-return]
