"""Names for what a schedule talks about: blocks, loops and sampled numbers.

A random variable means the same after every step, as long as what it names is there; and in the trace it is what ties
steps together."""

from __future__ import annotations

from tilewright.ir.expr import PrimExpr, Var


class LoopRV:
    """Names a loop."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        """A name for nothing yet."""


class BlockRV:
    """Names a block."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        """A name for nothing yet."""


ExprRV = PrimExpr
"""Names a number that was sampled: a variable."""

RandomVariable = BlockRV | LoopRV | Var
