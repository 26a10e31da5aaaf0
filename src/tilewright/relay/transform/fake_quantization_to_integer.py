"""FakeQuantizationToInteger: turns arithmetic on dequantised values into integer arithmetic.

It applies to operators of the quantised dialect; a program without them is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import OpNotImplemented


@dataclass
class FakeQuantizationToInteger(FunctionPass):
    """An error where there is a quantised operator, which is not supported yet."""

    name = "FakeQuantizationToInteger"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Look for quantised operators."""

        def look(expr: Any) -> None:
            if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name.startswith("qnn."):
                raise OpNotImplemented(
                    f"FakeQuantizationToInteger has no rule for {expr.op.name}; run the model as it is, with the "
                    "quantised values dequantised",
                    span=expr.span,
                )

        post_order_visit(func.body, look)
        return func
