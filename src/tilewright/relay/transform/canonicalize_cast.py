"""CanonicalizeCast: duplicates a cast to a wider type that several consumers share into each of them.

Fusion ends at a tensor that several kernels read. If that tensor is the wider copy of a smaller one, each kernel reads
less memory if it casts what it needs itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import is_call, tensor_of, uses_of
from tilewright.support.dtype import DataType

CHEAP = (OpPattern.ELEMWISE, OpPattern.BROADCAST)


class _Canonicalize(ExprMutator):
    """Gives every user of a widening cast its own copy."""

    def __init__(self, uses: dict[RelayExpr, int]) -> None:
        super().__init__()
        self.uses = uses

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions stay."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_call(self, call: Call) -> RelayExpr:
        """Elementwise operators convert their arguments themselves."""
        new = call.map_children(self.visit)
        if not isinstance(call.op, Op) or call.op.get_attr("TOpPattern") not in CHEAP:
            return new
        arguments = [self._own(old, argument) for old, argument in zip(call.args, new.args, strict=True)]
        same = all(made is argument for made, argument in zip(arguments, new.args, strict=True))
        return new if same else new.replace(args=tuple(arguments))

    def _own(self, old: RelayExpr, new: RelayExpr) -> Any:
        if not is_call(old, "cast") or self.uses.get(old, 0) < 2:
            return new
        assert isinstance(old, Call)
        narrow, wide = (DataType(tensor_of(one).dtype) for one in (old.args[0], old))
        if wide.bits <= narrow.bits or not isinstance(new, Call):
            return new
        return Call(new.op, new.args, new.attrs, new.type_args, new.span)


@dataclass
class CanonicalizeCast(FunctionPass):
    """Copy widening conversions to their users."""

    name = "CanonicalizeCast"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        body = _Canonicalize(uses_of(func.body)).visit(func.body)
        return func if body is func.body else func.replace(body=body)
