"""CanonicalizeOps: replaces operators by equivalent simpler ones."""

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
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten, shape_of
from tilewright.relay.transform.simplify_inference import along_axis


def _bias_add(old: Call, new: Call) -> RelayExpr:
    attrs: Any = new.attrs
    rank = len(shape_of(old.args[0]))
    return call("add", new.args[0], along_axis(new.args[1], rank, attrs.axis))


@dataclass
class CanonicalizeOps(FunctionPass):
    """``bias_add`` becomes ``add``."""

    name = "CanonicalizeOps"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.bias_add": _bias_add}), func)
