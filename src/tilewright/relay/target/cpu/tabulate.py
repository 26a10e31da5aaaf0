"""Tabulate: functions of one quantised tensor as tables of 256 bytes, on CPUs that shuffle bytes by a vector.

Between two quantised tensors there may be any number of elementwise operators: an activation such as SiLU dequantises,
computes, quantises, multiplies and quantises again. Where all of them depend on one uint8 tensor only, its 256 values
are all that there is to compute, once, with the reference. Four instructions look up 64 elements where the CPU permutes
128 bytes, about 70 for 32 elements where it shuffles 16: still far fewer than an exponential takes. What takes few
instructions itself, such as a rescaling, stays as it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    keep_type,
    rewritten,
    shape_of,
    tensor_of,
)
from tilewright.schedule.cpu.machine import current_cpu
from tilewright.target.cpu import CPUDescription

LOOKUP: Final = "nn.contrib_byte_lookup"
_QUANTIZING: Final = frozenset({"qnn.quantize", "qnn.dequantize"})
_ELEMENTWISE: Final = (OpPattern.ELEMWISE, OpPattern.BROADCAST)

SHUFFLED_LOOKUP: Final = 18
"""Instructions that look up as many elements as a vector of float32 has, with shuffles of 16 bytes."""
TABLE_LOOKUP: Final = 8
"""The same on AArch64, whose lookups in 64 bytes count for several instructions."""
_INSTRUCTIONS: Final = {"qnn.quantize": 6, "qnn.dequantize": 4, "clip": 2, "divide": 4, "sqrt": 4}
"""Of one vector, about; others take one, if they are simple."""
_SIMPLE: Final = frozenset(
    {"add", "subtract", "multiply", "maximum", "minimum", "nn.relu", "negative", "abs"}
)
_FUNCTION: Final = 20
"""Instructions of an exponential, a logarithm, or what is made of them."""


def _is_function(op: Op) -> bool:
    """True if an operator computes each element from the elements in its place."""
    pattern = op.get_attr("TOpPattern")
    pure = not op.get_attr("TOpIsStateful") and "." not in op.name.removeprefix("nn.")
    return op.name in _QUANTIZING or (pattern in _ELEMENTWISE and pure)


def _is_number(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) and expr.data.numpy().size == 1


class _Tabulator(OperatorRewriter):
    """Knows of each expression the one uint8 tensor that it is a function of.

    What takes no more than ``least`` instructions is computed.
    """

    def __init__(self, least: int) -> None:
        super().__init__({})
        self.least = least
        self.sources: dict[RelayExpr, RelayExpr] = {}

    def visit_call(self, call: Call) -> RelayExpr:
        """The call, or a lookup in its place."""
        new = super().visit_call(call)
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not _is_function(new.op):
            return new
        keep_type(call, new)
        source = self._source(new)
        if source is None:
            return new
        made = new
        is_result = new.op.name == "qnn.quantize" and str(tensor_of(new).dtype) == "uint8"
        if is_result and _instructions(new, source) > self.least:
            made = _table(new, source)
            keep_type(call, made)
        self.sources[made] = source
        return made

    def _source(self, new: Call) -> RelayExpr | None:
        found: list[RelayExpr] = []
        for argument in new.args:
            if _is_number(argument):
                continue
            source = self.sources.get(argument)
            if source is None and _is_bytes(argument):
                source = argument
            if source is None:
                return None
            found.append(source)
        if not found or any(one is not found[0] for one in found):
            return None
        return found[0] if shape_of(new) == shape_of(found[0]) else None


def _instructions(function: Call, source: RelayExpr) -> int:
    """About how many instructions a function of a tensor takes for a vector of it."""
    seen: set[RelayExpr] = {source}
    pending: list[RelayExpr] = [function]
    total = 0
    while pending:
        expr = pending.pop()
        if expr in seen or not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        seen.add(expr)
        total += _INSTRUCTIONS.get(expr.op.name, 1 if expr.op.name in _SIMPLE else _FUNCTION)
        pending += expr.args
    return total


def _is_bytes(expr: RelayExpr) -> bool:
    return not isinstance(expr, Constant) and str(tensor_of(expr).dtype) == "uint8"


def _table(function: Call, source: RelayExpr) -> Call:
    """The lookup of a function of a tensor."""
    entries = np.asarray(Interpreter().run(_of_all_bytes(function, source)), np.uint8)
    return call(LOOKUP, source, table=entries.tobytes().hex())


def _of_all_bytes(function: Call, source: RelayExpr) -> RelayExpr:
    """A function of a tensor, called on the numbers from 0 to 255."""
    made: dict[RelayExpr, RelayExpr] = {source: const(np.arange(256, dtype=np.uint8))}
    pending: list[RelayExpr] = [function]
    while pending:
        expr = pending[-1]
        if not isinstance(expr, Call):
            made.setdefault(expr, expr)
        missing = [one for one in expr.args if one not in made] if isinstance(expr, Call) else []
        if missing:
            pending += missing
            continue
        if isinstance(expr, Call) and expr not in made:
            made[expr] = Call(expr.op, [made[one] for one in expr.args], expr.attrs)
        pending.pop()
    return made[function]


def _cheapest_lookup(cpu: CPUDescription) -> int | None:
    """The instructions that a function must take at least to be looked up instead; None if there are no lookups."""
    if "avx512vbmi" in cpu.features:
        return 0
    if cpu.family == "aarch64" and "neon" in cpu.features:
        return TABLE_LOOKUP
    return SHUFFLED_LOOKUP if "ssse3" in cpu.features else None


@dataclass
class Tabulate(FunctionPass):
    """Look up elementwise functions of quantised tensors in tables."""

    name = "Tabulate"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        least = _cheapest_lookup(current_cpu())
        return func if least is None else rewritten(_Tabulator(least), func)
