"""AlterOpLayout: converts operators to the layouts in which the target computes fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.strategy.blocks import chosen_blocks
from tilewright.relay.transform.choose_blocks import choose_blocks
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.layout_rewrite import rewrite_layouts


@dataclass
class AlterOpLayout(FunctionPass):
    """Replace calls by what ``FTVMAlterOpLayout`` of their operators gives under the current target, and bring the
    tensors around them to the layouts that follow. Where the target tells what blocks of channels cost, those of all
    convolutions are chosen together (see ``choose_blocks``)."""

    name = "AlterOpLayout"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        choice = choose_blocks(func)

        def altered(call: Call, arguments: list[RelayExpr], types: list[Any]) -> RelayExpr | None:
            assert isinstance(call.op, Op)
            alter = call.op.get_attr("FTVMAlterOpLayout")
            if alter is None:
                return None
            with chosen_blocks(choice.blocks.get(call)):
                made: RelayExpr | None = alter(call.attrs, arguments, types, call.checked_type)
            return made

        return rewrite_layouts(func, altered, choice.layouts)
