"""The values that a model holds, by the expressions that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Constant
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.runtime.ndarray import NDArray


class HeldValues:
    """A model's module, and the values of its parameters and constants."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.param_values: dict[RelayExpr, NDArray] = {}

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of a constant or of a parameter; None for anything else."""
        if expr is None:
            return None
        stored = expr.data if isinstance(expr, Constant) else self.param_values.get(expr)
        return None if stored is None else stored.numpy()


class ScopedNode(ModelNode):
    """A node whose converters share a scope, which knows the values of parameters."""

    scope: HeldValues

    def __init__(
        self, op_type: str, name: str, scope: HeldValues, attributes: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(op_type, name, dict(attributes or {}), scope.module)
        self.scope = scope

    def value(self, expr: RelayExpr | None) -> np.ndarray[Any, Any] | None:
        """The value of a constant or of a parameter."""
        return self.scope.value(expr)

    def number(self, expr: RelayExpr | None, what: str) -> Any:
        """An input that is one known number."""
        return self.required_value(expr, what).reshape(-1)[0].item()
