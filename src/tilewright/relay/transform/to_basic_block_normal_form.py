"""ToBasicBlockNormalForm: binds what several blocks use by a let in the block around them.

Within a block the graph stays a graph. In the result, every expression belongs to one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Var
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.let_blocks import BlockRebuilder


class _Lift(BlockRebuilder):
    def visit_default(self, expr: Any) -> Any:
        made = self.rebuild(expr)
        if expr in self.blocks.lifted:
            return self.bind(self.blocks.of[expr], Var("x", span=expr.span), made)
        return made


def to_basic_block_normal_form(expr: RelayExpr) -> RelayExpr:
    """The expression in basic-block normal form; itself if it is."""
    rebuilder = _Lift(expr)
    return rebuilder.run(expr) if rebuilder.blocks.lifted else expr


@dataclass
class ToBasicBlockNormalForm(FunctionPass):
    """Bring functions into basic-block normal form."""

    name = "ToBasicBlockNormalForm"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Bind what blocks of one function share."""
        return func if func.is_primitive else to_basic_block_normal_form(func)  # type: ignore[return-value]
