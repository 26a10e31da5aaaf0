"""FindChannelShuffle: three changes of shape and order that deal out channels become one operator."""

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
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, is_call, rewritten, shape_of


def _shuffle(old: Call, new: Call) -> RelayExpr | None:
    """The operator in the place of the last reshape; None for any other."""
    swapped = new.args[0]
    if not isinstance(swapped, Call) or not is_call(swapped, "transpose"):
        return None
    order: Any = swapped.attrs
    split = swapped.args[0]
    if (
        tuple(order.axes or ()) != (0, 2, 1, 3, 4)
        or not isinstance(split, Call)
        or not is_call(split, "reshape")
    ):
        return None
    data = split.args[0]
    before, parts, after = shape_of(data), shape_of(split), shape_of(old)
    if not all(isinstance(extent, int) for extent in (*before, *parts, *after)) or before != after:
        return None
    if len(before) != 4 or (parts[0], *parts[3:]) != (before[0], *before[2:]):
        return None
    return call("nn.contrib_channel_shuffle", data, groups=parts[1])


@dataclass
class FindChannelShuffle(FunctionPass):
    """``reshape(transpose(reshape(x)))`` of images that deals out the channels of groups in turn becomes
    ``nn.contrib_channel_shuffle``, which runs in blocks of channels as well: a reshape asks for the plain layout."""

    name = "FindChannelShuffle"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(OperatorRewriter({"reshape": _shuffle}), func)
