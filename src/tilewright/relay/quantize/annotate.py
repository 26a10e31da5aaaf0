"""QuantizeAnnotate: puts ``simulated_quantize`` where a quantised program would round.

Scales and limits are variables until they are calibrated. A value is a float (no kind), 8-bit data (``INPUT``) or sums
of 32 bits (``ACTIVATION``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import Call, Tuple, var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.quantize.configuration import QAnnotateKind, current_qconfig, quantize_context
from tilewright.relay.quantize.rules import (
    ARITHMETIC,
    AVERAGES,
    KEEPING,
    LAYERS,
    MOVING,
    is_constant,
    operator,
)
from tilewright.relay.quantize.simulated import simulated_quantize
from tilewright.relay.transform.lib.function_pass import FunctionPass

_INPUT, _WEIGHT, _ACTIVATION = QAnnotateKind.INPUT, QAnnotateKind.WEIGHT, QAnnotateKind.ACTIVATION


class _Annotate(ExprMutator):
    """Rewrites a function, and knows the kind of each value that it made."""

    def __init__(self) -> None:
        super().__init__()
        self.configuration = current_qconfig()
        self.context = quantize_context()
        self.kinds: dict[RelayExpr, QAnnotateKind] = {}
        self.simulated: dict[tuple[RelayExpr, QAnnotateKind], RelayExpr] = {}

    def quantised(self, expr: RelayExpr, kind: QAnnotateKind) -> RelayExpr:
        """An expression as integers of this kind; every expression is quantised once."""
        if self.kinds.get(expr) == kind:
            return expr
        if (expr, kind) not in self.simulated:
            parameters = [
                var(name, shape=(), dtype="float32") for name in ("dom_scale", "clip_min", "clip_max")
            ]
            scale, least, most = parameters
            made = simulated_quantize(expr, scale, least, most, kind=kind)
            self.simulated[expr, kind] = made
            self.kinds[made] = kind
        return self.simulated[expr, kind]

    def made(self, expr: RelayExpr, kind: QAnnotateKind | None) -> RelayExpr:
        """Remember the kind of an expression."""
        if kind is not None:
            self.kinds[expr] = kind
        return expr

    def visit_call(self, call: Call) -> Any:
        """By the operator's family."""
        new: Any = call.map_children(self.visit)
        name = operator(call)
        if name in LAYERS:
            if not self.configuration.guard(call) or self.context.check_to_skip(call):
                return new
            kinds = (_INPUT, _WEIGHT if is_constant(new.args[1]) else _INPUT)
            arguments = [self.quantised(*one) for one in zip(new.args, kinds, strict=True)]
            return self.made(new.replace(args=tuple(arguments)), _ACTIVATION)
        if name == "annotation.cast_hint":
            return self.quantised(new.args[0], _INPUT)
        if name in KEEPING:
            return self.made(new, self.kinds.get(new.args[0]))
        if name in MOVING:
            return self.moved(new)
        if name in AVERAGES and new.args[0] in self.kinds:
            return self.made(new.replace(args=(self.quantised(new.args[0], _INPUT),)), _ACTIVATION)
        return self.arithmetic(name, new) if name in ARITHMETIC else new

    def moved(self, call: Call) -> RelayExpr:
        """On 8-bit data, where all of it is quantised."""
        first = call.args[0]
        if isinstance(first, Tuple):
            if not all(field in self.kinds for field in first.fields):
                return call
            fields = Tuple([self.quantised(field, _INPUT) for field in first.fields])
            return self.made(call.replace(args=(fields,)), _INPUT)
        if first not in self.kinds:
            return call
        return self.made(call.replace(args=(self.quantised(first, _INPUT), *call.args[1:])), _INPUT)

    def arithmetic(self, name: str, call: Call) -> RelayExpr:
        """Sums of sums and constants; products of 8-bit factors."""
        known = [self.kinds.get(argument) for argument in call.args]
        if known == [None, None]:
            return call
        arguments = list(call.args)
        for place, (argument, kind) in enumerate(zip(call.args, known, strict=True)):
            if name == "multiply":
                if kind is None and not is_constant(argument):
                    return call
                arguments[place] = self.quantised(argument, _WEIGHT if kind is None else _INPUT)
            elif kind is None and not is_constant(argument):
                # Constants that are added become sums of 32 bits, which loses nothing worth simulating.
                arguments[place] = self.quantised(argument, _INPUT)
        if name == "add" and _ACTIVATION in known and known.count(_ACTIVATION) == 2:
            arguments[1] = self.quantised(arguments[1], _INPUT)
        return self.made(call.replace(args=tuple(arguments)), _ACTIVATION)


@dataclass
class QuantizeAnnotate(FunctionPass):
    """Simulate quantisation; scales and limits are parameters of the function."""

    name = "QuantizeAnnotate"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        body = _Annotate().visit(func.body)
        known = set(func.params)
        added = [one for one in free_vars(body) if one not in known]
        return func.replace(params=(*func.params, *added), body=body)


def annotate() -> Pass:
    """The pass that simulates quantisation."""
    return QuantizeAnnotate()
