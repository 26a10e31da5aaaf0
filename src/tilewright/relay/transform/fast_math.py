"""FastMath: replaces exponentials by less accurate polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, Rule, rewritten, tensor_of


def _fast(name: str) -> Rule:
    def rule(old: Call, new: Call) -> RelayExpr | None:
        # The polynomials are for float32; in float64 they would lose half of the digits.
        if str(tensor_of(old).dtype) != "float32":
            return None
        attrs: Any = new.attrs
        return call(name, *new.args, **(dict(attrs.items()) if attrs is not None else {}))

    return rule


RULES = {
    "exp": _fast("fast_exp"),
    "tanh": _fast("fast_tanh"),
    "erf": _fast("fast_erf"),
    "nn.softmax": _fast("nn.fast_softmax"),
}


@dataclass
class FastMath(FunctionPass):
    """Replace exp, tanh, erf and softmax of float32 by their fast versions."""

    name = "FastMath"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter(RULES), func)
