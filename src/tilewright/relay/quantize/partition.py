"""QuantizePartition: marks where quantised tensors leave the part of a program that is quantised.

What follows is not fused with it (``annotation.stop_fusion``), so that the tensor in memory is the narrow one
(``annotation.cast_hint``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.expr import Call, Tuple
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.annotation import cast_hint, stop_fusion
from tilewright.relay.quantize.configuration import QuantizeContext, current_qconfig
from tilewright.relay.quantize.rules import (
    ARITHMETIC,
    AVERAGES,
    KEEPING,
    LAYERS,
    MOVING,
    is_constant,
    operator,
)
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Regions(ExprMutator):
    """Follows quantised values; ``inside`` has those that are not marked yet."""

    def __init__(self) -> None:
        super().__init__()
        self.configuration = current_qconfig()
        # Layers are counted here as in the passes that follow, and not for them.
        self.context = QuantizeContext()
        self.inside: set[RelayExpr] = set()

    def outside(self, expr: RelayExpr) -> RelayExpr:
        """An expression as what is not quantised sees it."""
        if isinstance(expr, Tuple):
            fields = [self.outside(field) for field in expr.fields]
            return expr if all(a is b for a, b in zip(fields, expr.fields, strict=True)) else Tuple(fields)
        if expr not in self.inside:
            return expr
        if not self.configuration.store_lowbit_output:
            return stop_fusion(expr)
        return stop_fusion(cast_hint(expr, self.configuration.dtype_input))

    def visit_call(self, call: Call) -> Any:
        """Layers, and what goes on with quantised values, are inside."""
        new: Any = call.map_children(self.visit)
        name = operator(call)
        if name in LAYERS and self.configuration.guard(call) and not self.context.check_to_skip(call):
            self.inside.add(new)
            return new
        quantised = [one in self.inside for one in _operands(new)]
        goes_on = any(quantised) and name in MOVING | KEEPING | AVERAGES and all(quantised)
        if name in ARITHMETIC and any(quantised):
            others = [one for one, is_inside in zip(new.args, quantised, strict=True) if not is_inside]
            goes_on = name == "add" or all(is_constant(one) for one in others)
        if goes_on:
            self.inside.add(new)
            return new
        if not any(quantised):
            return new
        return new.replace(args=tuple(self.outside(argument) for argument in new.args))


def _operands(call: Call) -> list[RelayExpr]:
    return [
        one
        for argument in call.args
        for one in (argument.fields if isinstance(argument, Tuple) else [argument])
    ]


@dataclass
class QuantizePartition(FunctionPass):
    """Mark where quantised tensors are stored."""

    name = "QuantizePartition"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        regions = _Regions()
        return func.replace(body=regions.outside(regions.visit(func.body)))


def partition() -> Pass:
    """The pass that marks where quantised tensors are stored."""
    return QuantizePartition()
