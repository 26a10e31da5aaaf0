"""FakeQuantizationToInteger: turns arithmetic on dequantised values into integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.qnn.integers import integer_form
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten


def _quantize(old: Call, new: Call) -> RelayExpr | None:
    return integer_form(new)


@dataclass
class FakeQuantizationToInteger(FunctionPass):
    """Compute what stands between ``qnn.dequantize`` and ``qnn.quantize`` on integers, where every operator on the way
    has a rule (``relay.op.register_fake_quantization_to_integer``); the rest stays as it is."""

    name = "FakeQuantizationToInteger"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"qnn.quantize": _quantize}), func)
