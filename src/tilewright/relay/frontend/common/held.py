"""The values that a model holds, by the expressions that stand for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant
from tilewright.runtime.ndarray import NDArray


class HeldValues:
    """The values of a model's parameters, and of constants."""

    def __init__(self) -> None:
        self.param_values: dict[RelayExpr, NDArray] = {}

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of a constant or of a parameter; None for anything else."""
        if expr is None:
            return None
        stored = expr.data if isinstance(expr, Constant) else self.param_values.get(expr)
        return None if stored is None else stored.numpy()
