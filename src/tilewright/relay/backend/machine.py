"""Which executor a module needs."""

from __future__ import annotations

from typing import Any

from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, If, Let
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.relay.function import Function


def needs_machine(module: IRModule) -> bool:
    """True if a module has shapes that are not known, or control flow: the graph executor has neither."""
    found = _ControlFlow()
    main = module["main"]
    for parameter in main.params:
        found.check(parameter.checked_type)
    found.visit(main.body)
    return found.present or len(module.functions) > 1


class _ControlFlow(ExprVisitor):
    """Looks for what the graph executor does not support."""

    def __init__(self) -> None:
        super().__init__()
        self.present = False

    def check(self, kind: Any) -> None:
        """Dimensions that are not known."""
        if isinstance(kind, TupleType):
            for field in kind.fields:
                self.check(field)
        elif isinstance(kind, TensorType):
            self.present |= any(isinstance(extent, UnknownDimension) for extent in kind.shape)

    def visit_call(self, call: Call) -> None:
        self.check(call.checked_type)
        super().visit_call(call)

    def visit_if(self, i: If) -> None:
        self.present = True

    def visit_let(self, let: Let) -> None:
        self.present = True

    def visit_function(self, fn: Function) -> None:
        self.present = True
