"""SplitArgs: turns concatenations of many tensors into concatenations of fewer, for targets whose kernels take a
limited number of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.expr_functor import CallRewriter
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Split(CallRewriter):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def rewrite_call(self, old: Call, new: Call) -> RelayExpr:
        joined: Any = new.args[0] if len(new.args) == 1 else None
        if not (isinstance(new.op, Op) and new.op.name == "concatenate" and isinstance(joined, Tuple)):
            return new
        stop = Op.get("annotation.stop_fusion")
        fields: list[RelayExpr] = list(joined.fields)
        while len(fields) > self.limit:
            # Parts that are fused with what joins them would be one kernel of many arguments again.
            fields = [
                Call(stop, [Call(new.op, [Tuple(fields[start : start + self.limit])], new.attrs)])
                if len(fields) - start > 1
                else fields[start]
                for start in range(0, len(fields), self.limit)
            ]
        return new if len(fields) == len(joined.fields) else Call(new.op, [Tuple(fields)], new.attrs)


@dataclass
class SplitArgs(FunctionPass):
    """No kernel of a concatenation has more than ``max_function_args`` arguments, of which one is its result. A number
    below three sets no limit."""

    max_function_args: int

    name = "SplitArgs"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Split within one function."""
        if self.max_function_args < 3:
            return func
        made: Function = _Split(self.max_function_args - 1).visit(func)
        return made
