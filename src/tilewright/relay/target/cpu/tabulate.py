"""Tabulate: functions of one quantised tensor as tables of 256 bytes, on CPUs that permute bytes by a vector.

Between two quantised tensors there may be any number of elementwise operators: an activation such as SiLU dequantises,
computes, quantises, multiplies and quantises again. Where all of them depend on one uint8 tensor only, its 256 values
are all that there is to compute, once, with the reference; four instructions look up 64 elements.
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

LOOKUP: Final = "nn.contrib_byte_lookup"
_QUANTIZING: Final = frozenset({"qnn.quantize", "qnn.dequantize"})
_ELEMENTWISE: Final = (OpPattern.ELEMWISE, OpPattern.BROADCAST)


def _is_function(op: Op) -> bool:
    """True if an operator computes each element from the elements in its place."""
    pattern = op.get_attr("TOpPattern")
    pure = not op.get_attr("TOpIsStateful") and "." not in op.name.removeprefix("nn.")
    return op.name in _QUANTIZING or (pattern in _ELEMENTWISE and pure)


def _is_number(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) and expr.data.numpy().size == 1


class _Tabulator(OperatorRewriter):
    """Knows of each expression the one uint8 tensor that it is a function of."""

    def __init__(self) -> None:
        super().__init__({})
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
        if new.op.name == "qnn.quantize" and str(tensor_of(new).dtype) == "uint8":
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


@dataclass
class Tabulate(FunctionPass):
    """Look up elementwise functions of quantised tensors in tables."""

    name = "Tabulate"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        if "avx512vbmi" not in current_cpu().features:
            return func
        return rewritten(_Tabulator(), func)
