"""FoldTransposeIntoDense: a dense layer of a matrix that is transposed for it becomes a product with the matrix itself.

Importers write products of two computed matrices as ``nn.dense(x, transpose(y))``, the form that patterns of other code
generators look for. The matrix need not be copied in another order for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, tensor_of


def _product(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    data, weight = new.args
    if not isinstance(weight, Call) or not is_call(weight, "transpose"):
        return None
    matrix = weight.args[0]
    order: Any = weight.attrs
    swapped = [axis % 2 for axis in order.axes or (1, 0)] == [1, 0]
    if not swapped or isinstance(matrix, Constant) or tensor_of(old).dtype.is_integral:
        return None
    return call("nn.matmul", data, matrix, units=attrs.units, out_dtype=attrs.out_dtype)


@dataclass
class FoldTransposeIntoDense(FunctionPass):
    """Turn ``nn.dense(x, transpose(y))`` of floating-point matrices into ``nn.matmul(x, y)``; constants stay."""

    name = "FoldTransposeIntoDense"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.dense": _product}), func)
