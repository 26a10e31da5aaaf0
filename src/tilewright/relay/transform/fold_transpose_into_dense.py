"""FoldTransposeIntoDense: a dense layer of a matrix that is transposed for it becomes a product with the matrix itself.

Importers write products of two computed matrices as ``nn.dense(x, transpose(y))``, the form that patterns of other code
generators look for. The matrix need not be copied in another order for that. Weights stay: they are transposed once,
and what is computed from constants only, such as quantised weights, is a weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, tensor_of

_MOST_STEPS: Final = 16
"""Weights are computed in fewer."""


def _is_weight(matrix: RelayExpr) -> bool:
    pending = [matrix]
    for _ in range(_MOST_STEPS):
        if not pending:
            return True
        expr = pending.pop()
        if isinstance(expr, Call):
            pending += expr.args
        elif not isinstance(expr, Constant):
            return False
    return not pending


def _product(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    data, weight = new.args
    if not isinstance(weight, Call) or not is_call(weight, "transpose"):
        return None
    matrix = weight.args[0]
    order: Any = weight.attrs
    swapped = [axis % 2 for axis in order.axes or (1, 0)] == [1, 0]
    if not swapped or tensor_of(old).dtype.is_integral or _is_weight(matrix):
        return None
    return call("nn.matmul", data, matrix, units=attrs.units, out_dtype=attrs.out_dtype)


@dataclass
class FoldTransposeIntoDense(FunctionPass):
    """Turn ``nn.dense(x, transpose(y))`` of floating-point matrices into ``nn.matmul(x, y)``; weights stay."""

    name = "FoldTransposeIntoDense"
    opt_level = 2

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.dense": _product}), func)
