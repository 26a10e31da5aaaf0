"""How an operator takes part in fusion."""

from __future__ import annotations

from enum import IntEnum


class OpPattern(IntEnum):
    """How an operator takes part in fusion."""

    ELEMWISE = 0
    """Each element of the output depends on the elements of the inputs at the same place."""
    BROADCAST = 1
    """As ELEMWISE, but axes of inputs may be repeated."""
    INJECTIVE = 2
    """Each element of the output depends on one element of each input, at some place."""
    COMM_REDUCE = 3
    """Combines elements along axes."""
    OUT_ELEMWISE_FUSABLE = 4
    """A heavy operator, to whose output elementwise operators can be fused."""
    TUPLE = 7
    """Makes a tuple."""
    OPAQUE = 8
    """Cannot be fused."""
