"""CombineParallelBatchMatmul: combines batched products that share their first operand into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import known
from tilewright.relay.transform.lib.combine_parallel import AlongAxis, combine_parallel
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import is_call, shape_of, tensor_of


class _Products(AlongAxis):
    operator = "nn.batch_matmul"

    def axis(self, heavy: Call) -> int:
        """The columns."""
        return 2

    def supports(self, heavy: Call) -> bool:
        """The extents of the second operand must be known."""
        return known(*shape_of(heavy.args[1]))

    def compatible(self, first: Call, second: Call) -> bool:
        """The number of columns may differ."""
        columns = _columns(first)
        weights = [tensor_of(each.args[1]) for each in (first, second)]
        shapes = [list(shape_of(each.args[1])) for each in (first, second)]
        for shape in shapes:
            del shape[columns]
        same = first.attrs == second.attrs and weights[0].dtype == weights[1].dtype
        return same and shapes[0] == shapes[1]

    def combine(self, heavies: Sequence[Call], arguments: Sequence[Sequence[RelayExpr]]) -> RelayExpr:
        """The columns one after another."""
        second = call("concatenate", Tuple([each[1] for each in arguments]), axis=_columns(heavies[0]))
        return Call(heavies[0].op, (arguments[0][0], second), heavies[0].attrs)

    def join(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> RelayExpr:
        """Columns are last, whatever the rank of the operands."""
        made = super().join(operands, heavies, axis)
        if axis is None and is_call(made, "concatenate"):
            return call("concatenate", Tuple(operands), axis=-1)
        return made


def _columns(heavy: Call) -> int:
    """The axis of the second operand that becomes the columns of the product."""
    attrs: Any = heavy.attrs
    return 1 if attrs.transpose_b else 2


@dataclass
class CombineParallelBatchMatmul(FunctionPass):
    """Combine at least so many products of one batch of matrices, and the elementwise operators that follow them."""

    min_num_branches: int = 3

    name = "CombineParallelBatchMatmul"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Combine within one function."""
        return combine_parallel(func, _Products(), self.min_num_branches)
