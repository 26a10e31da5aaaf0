"""LabelOps: stores the structural hash of each primitive function in the attribute "hash", for profilers."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import PassContext
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Label(ExprMutator):
    def visit_function(self, fn: Function) -> RelayExpr:
        if not fn.is_primitive:
            return super().visit_function(fn)
        if fn.attrs.get("hash") is not None:
            return fn
        return fn.with_attr("hash", f"{structural_hash(fn) & (1 << 64) - 1:016x}")


@dataclass
class LabelOps(FunctionPass):
    """Label the primitive functions."""

    name = "LabelOps"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Label within one function."""
        made: Function = _Label().visit(func)
        return made
