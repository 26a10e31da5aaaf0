"""SimplifyExpr: local rewrites that only need a call and its arguments.

Arguments come first, so a chain collapses from the inputs on in one traversal; after a rule fires, the rules of its
result are tried. The rules are in ``simplify_movement`` and ``simplify_arithmetic``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.transform.lib import simplify_arithmetic, simplify_movement
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import FieldsOfTuples, rewritten

Simplification = Callable[[Call], RelayExpr | None]

RULES: dict[str, Sequence[Simplification]] = {**simplify_movement.RULES, **simplify_arithmetic.RULES}


def _simplified(old: Call, new: Call) -> RelayExpr:
    current: RelayExpr = new
    while isinstance(current, Call) and isinstance(current.op, Op):
        for rule in RULES.get(current.op.name, ()):
            made = rule(current)
            if made is not None:
                current = made
                break
        else:
            return current
    return current


@dataclass
class SimplifyExpr(FunctionPass):
    """Remove what does nothing, and join what follows one another."""

    name = "SimplifyExpr"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(FieldsOfTuples(dict.fromkeys(RULES, _simplified)), func)
