"""CompactConstants: puts the elements of constants into the order of their indices, as kernels expect them."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Constant
from tilewright.relay.function import Function
from tilewright.relay.transform.fold_constant import shared_values
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter
from tilewright.runtime.ndarray import array


class _Compact(OperatorRewriter):
    """Copies the constants that share another's memory in an order of their own."""

    def __init__(self) -> None:
        super().__init__({})

    def visit_constant(self, const: Constant) -> RelayExpr:
        """The same value, compact."""
        values = shared_values(const.data)
        if values is None or values.flags.c_contiguous:
            return const
        return Constant(array(values), const.span)


@dataclass
class CompactConstants(FunctionPass):
    """Copy constants whose elements are not in the order of their indices."""

    name = "CompactConstants"

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Compact the constants of one function."""
        body = _Compact().visit(func.body)
        return func if body is func.body else func.replace(body=body)
