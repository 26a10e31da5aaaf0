"""DeadCodeElimination: drop let-bound values that nothing uses.

A value counts as used where something live uses it, so that chains of unused values and functions that only call
themselves go too. A value with an effect stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.purity import Effect, Effects
from tilewright.relay.expr import Let, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.transform.base import FunctionPass
from tilewright.support.node import Node


def _live_uses(root: RelayExpr, effects: Effects) -> Counter[Var]:
    """How many times live code uses each variable."""
    counts: Counter[Var] = Counter()
    values: dict[Var, RelayExpr] = {}
    seen: set[Node] = set()
    for node in post_order(root):
        if isinstance(node, Let):
            values[node.var] = node.value
    pending: list[Node] = [root]
    while pending:
        current = pending.pop()
        if isinstance(current, Var):
            counts[current] += 1
            if counts[current] == 1 and current in values:
                pending.append(values[current])
        elif current not in seen:
            seen.add(current)
            if not isinstance(current, Let):
                pending.extend(current.children())
                continue
            if effects.of[current.value] & Effect.WRITE:
                pending.append(current.value)
            pending.append(current.body)
    return counts


class _Eliminate(ExprMutator):
    def __init__(self, uses: Counter[Var], effects: Effects, inline_once: bool) -> None:
        super().__init__()
        self.uses = uses
        self.effects = effects
        self.inline_once = inline_once

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            uses, effect = self.uses[current.var], self.effects.of[current.value]
            if uses or effect & Effect.WRITE:
                value = self.visit(current.value)
                if self.inline_once and uses == 1 and not effect and not _is_recursive(current):
                    self.memo_map[current.var] = value
                else:
                    chain.append((current, value))
            current = current.body
        body = self.visit(current)
        for old, value in reversed(chain):
            same = value is old.value and body is old.body
            body = old if same else old.replace(value=value, body=body)
        return body  # type: ignore[no-any-return]


def _is_recursive(let: Let) -> bool:
    return isinstance(let.value, Function) and any(node is let.var for node in post_order(let.value))


@dataclass
class DeadCodeElimination(FunctionPass):
    """Drop unused lets. With ``inline_once``, a value without effect that is used in one place moves there."""

    inline_once: bool = False

    name = "DeadCodeElimination"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Drop within one function."""
        effects = Effects(func, mod)
        made: Function = _Eliminate(_live_uses(func, effects), effects, self.inline_once).visit(func)
        return made
