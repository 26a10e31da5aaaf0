"""DenseOfConstant: a product with a constant matrix becomes a dense layer, whose weight can then be put into blocks.

PyTorch's ``addmm`` and TensorFlow's ``MatMul`` have the matrix with its columns as units, where a dense layer has them
as rows. The transposition is that of a constant, and costs nothing when the model runs.
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
from tilewright.relay.op.shapes import dims
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten, tensor_of
from tilewright.target import Target


def _dense(old: Call, new: Call) -> RelayExpr | None:
    attrs: Any = new.attrs
    data, weight = new.args
    if not isinstance(weight, Constant) or attrs.transpose_a:
        return None
    rows = weight if attrs.transpose_b else call("transpose", weight, axes=(1, 0))
    units = dims(tensor_of(old.args[1]))[0 if attrs.transpose_b else 1]
    return call("nn.dense", data, rows, units=units, out_dtype=attrs.out_dtype)


@dataclass
class DenseOfConstant(FunctionPass):
    """Turns products with constant matrices into dense layers, on CPUs."""

    name = "DenseOfConstant"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is None or "cpu" not in target.keys:
            return func
        return rewritten(OperatorRewriter({"nn.matmul": _dense}), func)
