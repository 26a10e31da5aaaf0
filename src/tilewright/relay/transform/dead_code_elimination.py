"""DeadCodeElimination: removes unused let-bound values.

A value counts as used if something live uses it, so that chains of unused values and functions that only call
themselves are removed too. A value with a side effect stays, except for writes to a reference that is created here and
never read.
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
from tilewright.relay.expr import Let, RefCreate, RefWrite, Var
from tilewright.relay.expr_functor import ExprMutator, let_block
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.let_blocks import is_recursive
from tilewright.support.node import Node


class _Liveness:
    """Liveness: ``uses`` counts the uses of each variable, ``kept`` are the lets of values with effects that
    matter."""

    def __init__(self, root: RelayExpr, effects: Effects) -> None:
        self.uses: Counter[Var] = Counter()
        self.kept: set[Let] = set()
        values: dict[Var, RelayExpr] = {}
        waiting: dict[Var, list[Let]] = {}
        for node in post_order(root):
            if isinstance(node, Let):
                values[node.var] = node.value
        seen: set[Node] = set()
        pending: list[Node] = [root]
        while pending:
            current = pending.pop()
            if isinstance(current, Var):
                self.uses[current] += 1
                if self.uses[current] == 1:
                    if current in values:
                        pending.append(values[current])
                    for write in waiting.pop(current, ()):
                        self.kept.add(write)
                        pending.append(write.value)
            elif current not in seen:
                seen.add(current)
                if not isinstance(current, Let):
                    pending.extend(current.children())
                    continue
                pending.append(current.body)
                if effects.of[current.value] & Effect.WRITE:
                    target = _local_reference(current.value, values, effects)
                    if target is not None and not self.uses[target]:
                        # Whether anything reads the reference is not known yet.
                        waiting.setdefault(target, []).append(current)
                    else:
                        self.kept.add(current)
                        pending.append(current.value)


def _local_reference(value: RelayExpr, values: dict[Var, RelayExpr], effects: Effects) -> Var | None:
    """The variable to whose reference a value writes, if that is all it does and the reference is made here."""
    if isinstance(value, RefWrite) and isinstance(value.ref, Var):
        made = isinstance(values.get(value.ref), RefCreate)
        if made and not effects.of[value.value] & Effect.WRITE:
            return value.ref
    return None


class _Eliminate(ExprMutator):
    def __init__(self, live: _Liveness, effects: Effects, inline_once: bool) -> None:
        super().__init__()
        self.live = live
        self.effects = effects
        self.inline_once = inline_once

    def visit_let(self, let: Let) -> RelayExpr:
        chain: list[tuple[Let, RelayExpr]] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            uses, effect = self.live.uses[current.var], self.effects.of[current.value]
            if uses or current in self.live.kept:
                value = self.visit(current.value)
                if self.inline_once and uses == 1 and not effect and not is_recursive(current):
                    self.memo_map[current.var] = value
                else:
                    chain.append((current, value))
            current = current.body
        return let_block(chain, self.visit(current))


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
        made: Function = _Eliminate(_Liveness(func, effects), effects, self.inline_once).visit(func)
        return made
