"""ToGraphNormalForm: replaces let-bound variables by their values, shared in the graph.

The opposite of A-normal form. Lets remain for recursive functions, and for values whose place matters because they read
or change state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.purity import Effects
from tilewright.relay.expr import Let
from tilewright.relay.expr_functor import ExprMutator, let_block
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.let_blocks import is_recursive


class _Inline(ExprMutator):
    def __init__(self, effects: Effects) -> None:
        super().__init__()
        self.effects = effects

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            if self.effects.of[current.value] or is_recursive(current):
                chain.append((current, self.visit(current.value)))
            else:
                self.memo_map[current.var] = self.visit(current.value)
            current = current.body
        return let_block(chain, self.visit(current))


@dataclass
class ToGraphNormalForm(FunctionPass):
    """Bring functions into graph normal form."""

    name = "ToGraphNormalForm"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Put the values of one function where they are used."""
        made: Function = _Inline(Effects(func, mod)).visit(func)
        return made
