"""Values of graph-level expressions, for programs in the manner of TVM's unit tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tvm
import tilewright.testing
from tilewright import relay

TARGETS = tvm.testing.enabled_targets()


def evaluate(expr: relay.Expr, inputs: list[relay.Var], *values: Any, kind: str = "graph") -> Any:
    """The value of an expression over its inputs on the first target, by one kind of executor."""
    target, dev = TARGETS[0]
    function = relay.Function(inputs, expr)
    result = relay.create_executor(kind, device=dev, target=target).evaluate(function)(*values)
    if isinstance(result, list | tvm.runtime.container.ADT):
        return [part.numpy() for part in result]
    return result.numpy()


def rand(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers between 0.1 and 1, the same ones for a shape each time."""
    return np.random.default_rng(7).uniform(0.1, 1, size=shape).astype(dtype)
