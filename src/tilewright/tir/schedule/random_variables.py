"""Handles for the objects of a schedule: blocks, loops and sampled numbers.

A random variable keeps its meaning after every step, as long as its object exists; in the trace it connects steps.
"""

from __future__ import annotations

from tilewright.ir.expr import PrimExpr, Var
from tilewright.support.node import Object


class LoopRV(Object):
    """Names a loop."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        """A name for nothing yet."""


class BlockRV(Object):
    """Names a block."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        """A name for nothing yet."""


ExprRV = PrimExpr
"""Names a number that was sampled: a variable."""

RandomVariable = BlockRV | LoopRV | Var
