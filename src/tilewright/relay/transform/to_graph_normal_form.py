"""ToGraphNormalForm: replaces let-bound variables by their values, shared in the graph.

The opposite of A-normal form. Lets remain for recursive functions, and for values whose place matters because they read
or change state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.purity import Effects
from tilewright.relay.expr import Let
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass


class _Inline(ExprMutator):
    def __init__(self, effects: Effects) -> None:
        super().__init__()
        self.effects = effects

    def _stays(self, let: Let) -> bool:
        if self.effects.of[let.value]:
            return True
        return isinstance(let.value, Function) and any(node is let.var for node in post_order(let.value))

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            if self._stays(current):
                chain.append((current, self.visit(current.value)))
            else:
                self.memo_map[current.var] = self.visit(current.value)
            current = current.body
        body = self.visit(current)
        for old, value in reversed(chain):
            same = value is old.value and body is old.body
            body = old if same else old.replace(value=value, body=body)
        return body  # type: ignore[no-any-return]


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
