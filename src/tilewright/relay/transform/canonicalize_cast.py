"""CanonicalizeCast: duplicates a cast to a wider type that several consumers share into each of them.

Fusion ends at a tensor that several kernels read. If that tensor is the wider copy of a smaller one, each kernel reads
less memory if it casts what it needs itself. The same goes for elementwise arithmetic with constants on such a copy:
a dequantised tensor is ``(cast(data) - zero point) * scale``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.transform.fuse_ops import GLOBAL_POOLS
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import is_call, tensor_of, uses_of
from tilewright.support.dtype import DataType

CHEAP = (OpPattern.ELEMWISE, OpPattern.BROADCAST)
ARITHMETIC = ("add", "subtract", "multiply")


class _Canonicalize(ExprMutator):
    """Gives every user of a widening cast its own copy."""

    def __init__(self, uses: dict[RelayExpr, int]) -> None:
        super().__init__()
        self.uses = uses

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions stay."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_call(self, call: Call) -> RelayExpr:
        """Elementwise operators and global pools convert their arguments themselves."""
        new = call.map_children(self.visit)
        if not isinstance(call.op, Op) or not _takes_producers(call.op):
            return new
        arguments = [self._own(old, argument) for old, argument in zip(call.args, new.args, strict=True)]
        same = all(made is argument for made, argument in zip(arguments, new.args, strict=True))
        return new if same else new.replace(args=tuple(arguments))

    def _own(self, old: RelayExpr, new: RelayExpr) -> Any:
        """A copy of the widening cast, and of the arithmetic on it, if others use them too."""
        chain = _widened(old) if self.uses.get(old, 0) > 1 else []
        if not chain or not isinstance(new, Call):
            return new
        copied: list[tuple[Call, int]] = []
        current: RelayExpr = new
        for place in chain:
            if not isinstance(current, Call):
                return new
            copied.append((current, place))
            current = current.args[place]
        made: RelayExpr = current
        for call, place in reversed(copied):
            arguments = (*call.args[:place], made, *call.args[place + 1 :])
            made = Call(call.op, arguments, call.attrs, call.type_args, call.span)
        return made


def _takes_producers(op: Op) -> bool:
    return op.get_attr("TOpPattern") in CHEAP or op.name in GLOBAL_POOLS


def _widened(expr: RelayExpr) -> list[int]:
    """Which argument of each call, from ``expr`` down, leads to a tensor of a narrower type, by casts and by arithmetic
    with constants; empty if none does."""
    places: list[int] = []
    least, steps = _bits(expr), 0
    while isinstance(expr, Call) and is_call(expr, "cast", *ARITHMETIC):
        inner = [place for place, one in enumerate(expr.args) if not isinstance(one, Constant)]
        if len(inner) != 1 or tensor_of(expr.args[inner[0]]).shape != tensor_of(expr).shape:
            break
        if _bits(expr.args[inner[0]]) > _bits(expr):
            break  # a cast to a narrower type
        places.append(inner[0])
        expr = expr.args[inner[0]]
        if _bits(expr) < least:
            least, steps = _bits(expr), len(places)
    return places[:steps]


def _bits(expr: RelayExpr) -> int:
    return DataType(tensor_of(expr).dtype).bits


@dataclass
class CanonicalizeCast(FunctionPass):
    """Copy widening conversions to their users."""

    name = "CanonicalizeCast"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        body = _Canonicalize(uses_of(func.body)).visit(func.body)
        return func if body is func.body else func.replace(body=body)
