"""TVM's ``relay.frontend.change_datatype``: a program in another element type."""

from __future__ import annotations

from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform import InferType


class ChangeDatatype(ExprMutator):
    """Changes constants and parameters of one element type to another: ``ChangeDatatype("float32", "float16")``. Types
    within the program follow."""

    def __init__(self, src: str, dst: str) -> None:
        super().__init__()
        self.src = src
        self.dst = dst

    def transform_function(self, func: Function, mod: IRModule, ctx: Any) -> Any:
        """The function in the other type."""
        return self.visit(func)

    def visit_constant(self, const: Constant) -> Any:
        """The same numbers in the other type."""
        if const.data.dtype != self.src:
            return const
        return const.astype(self.dst)

    def visit_var(self, var: Var) -> Any:
        """A variable of the other type."""
        kind = var.type_annotation
        if not isinstance(kind, TensorType) or str(kind.dtype) != self.src:
            return var
        return Var(var.name_hint, TensorType(kind.shape, self.dst))

    def visit_function(self, func: Function) -> Any:
        """A function of parameters of the other type; its result's type is inferred again."""
        params = [self.visit(param) for param in func.params]
        made = Function(params, self.visit(func.body), None, func.type_params, func.attrs)
        return InferType()(IRModule.from_expr(made))["main"]
