"""CanonicalizeOps: replaces operators by equivalent simpler ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, rewritten, shape_of, tensor_of
from tilewright.relay.transform.simplify_inference import along_axis


def _bias_add(old: Call, new: Call) -> RelayExpr:
    attrs: Any = new.attrs
    rank = len(shape_of(old.args[0]))
    return call("add", new.args[0], along_axis(new.args[1], rank, attrs.axis))


def _prelu(old: Call, new: Call) -> RelayExpr:
    """Operators that take channels in blocks, as an operand along one axis does not."""
    attrs: Any = new.attrs
    kind = tensor_of(old.args[0])
    data = new.args[0]
    slope = along_axis(new.args[1], len(kind.shape), attrs.axis)
    return call("where", call("less", data, const(0, str(kind.dtype))), call("multiply", data, slope), data)


@dataclass
class CanonicalizeOps(FunctionPass):
    """``bias_add`` becomes ``add``, and ``prelu`` a choice between the data and their product with the slopes."""

    name = "CanonicalizeOps"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"nn.bias_add": _bias_add, "nn.prelu": _prelu}), func)
