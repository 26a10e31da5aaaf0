"""AlterOpLayout: converts operators to the layouts in which the target computes fastest."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.target import alter_layout_rule, rewrites_for
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.layout_rewrite import rewrite_layouts
from tilewright.target import Target


@dataclass
class AlterOpLayout(FunctionPass):
    """Replace calls by what ``FTVMAlterOpLayout`` of their operators, or the current target, gives for them (see
    ``relay.target``), and bring the tensors around them to the layouts that follow. A target may plan the layouts of
    the whole function first."""

    name = "AlterOpLayout"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        planner = rewrites_for(Target.current()).plan_layouts
        plan = None if planner is None else planner(func)

        def altered(call: Call, arguments: list[RelayExpr], types: list[Any]) -> RelayExpr | None:
            assert isinstance(call.op, Op)
            alter = alter_layout_rule(call.op)
            if alter is None:
                return None
            with nullcontext() if plan is None else plan.around(call):
                return alter(call.attrs, arguments, types, call.checked_type)

        return rewrite_layouts(func, altered, {} if plan is None else plan.layouts)
