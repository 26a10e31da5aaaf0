"""Basic blocks: which part of a program evaluates an expression.

A function's body, a branch of a conditional and the result of a clause are blocks: their expressions are evaluated only
when control reaches them. An expression that occurs in several places of the graph is evaluated once, so it belongs to
the innermost block that contains all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.relay.adt import Clause
from tilewright.relay.analysis.feature import is_atomic
from tilewright.relay.expr import If
from tilewright.relay.function import Function
from tilewright.support.node import Node


@dataclass(eq=False, slots=True)
class Block:
    """A block; ``parent`` is the one around it, None for the whole program's."""

    parent: Block | None
    depth: int


def _common(first: Block, second: Block) -> Block:
    """The innermost block around both."""
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return first


class Blocks:
    """The blocks of an expression.

    ``of`` gives the block of each node; ``inner`` the blocks that begin at a node: a function's body, the branches of a
    conditional, a clause's result. ``lifted`` are the expressions that occur in more than one block, except for
    variables, constants and the like.
    """

    def __init__(self, root: RelayExpr) -> None:
        self.root = Block(None, 0)
        self.of: dict[Node, Block] = {root: self.root}
        self.inner: dict[Node, tuple[Block, ...]] = {}
        self.lifted: dict[Node, None] = {}
        for current in reversed(post_order(root)):
            for child, block in self._uses(current):
                known = self.of.get(child)
                if known is None:
                    self.of[child] = block
                elif known is not block:
                    self.of[child] = _common(known, block)
                    if not is_atomic(child):
                        self.lifted[child] = None

    def _begin(self, owner: Node, number: int) -> tuple[Block, ...]:
        around = self.of[owner]
        made = tuple([Block(around, around.depth + 1) for _ in range(number)])
        self.inner[owner] = made
        return made

    def _uses(self, current: Any) -> Iterator[tuple[Node, Block]]:
        """The parts of a node, each with the block in which it is used."""
        if isinstance(current, Function):
            yield current.body, self._begin(current, 1)[0]
        elif isinstance(current, Clause):
            yield current.rhs, self._begin(current, 1)[0]
        elif isinstance(current, If):
            first, second = self._begin(current, 2)
            yield current.cond, self.of[current]
            yield current.true_branch, first
            yield current.false_branch, second
        else:
            block = self.of[current]
            for child in current.children():
                yield child, block


def check_basic_block_normal_form(expr: RelayExpr) -> bool:
    """True if no expression occurs in more than one block: what several blocks use is bound by a let around them."""
    return not Blocks(expr).lifted
