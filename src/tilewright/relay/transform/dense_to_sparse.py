"""DenseToSparse: turns dense layers with the given weights into sparse products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import shape_of
from tilewright.relay.transform.lib.sparse_weights import SparseVariables


@dataclass
class DenseToSparse(FunctionPass):
    """Make dense layers with sparse weights use block-sparse products.

    ``weight_name`` are the variables; ``weight_shape`` gives for each the extents of the values, then the number of
    columns, then that of row starts.

    The variables become three each, with ``.data``, ``.indices`` and ``.indptr`` after the name.
    """

    weight_name: Sequence[str]
    weight_shape: Sequence[Sequence[int]]

    name = "DenseToSparse"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        variables = SparseVariables.of(self.weight_name, self.weight_shape)

        def rule(old: Call, new: Call) -> RelayExpr | None:
            parts = variables.parts(new.args[1]) if len(shape_of(old)) == 2 else None
            return None if parts is None else call("nn.sparse_dense", new.args[0], *parts)

        return variables.rewrite(func, {"nn.dense": rule})
