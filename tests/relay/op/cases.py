"""One table of cases a family drives every test of its operators.

A case says how to call the operator and on which inputs. ``test_operators.py`` runs each case of each table: the
compiled program against the NumPy reference at every optimisation level, the reference against ``expected`` where the
case gives an independent one, the gradient against finite differences, and, with every dimension unknown, the virtual
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Input:
    """An argument: random numbers from ``low`` to ``high`` (integers below ``high``), or given ``values``."""

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    values: Any = None

    def make(self, generator: np.random.Generator) -> np.ndarray[Any, Any]:
        """The array."""
        if self.values is not None:
            return np.asarray(self.values, dtype=self.dtype)
        if self.dtype == "bool":
            return generator.integers(0, 2, self.shape).astype("bool")
        if np.dtype(self.dtype).kind in "iu":
            low = max(int(self.low), 0) if np.dtype(self.dtype).kind == "u" else int(self.low)
            return generator.integers(low, max(int(self.high), low + 1), self.shape).astype(self.dtype)
        return generator.uniform(self.low, self.high, self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One call. ``build`` makes the expression from one variable for each input (a call that wants a tuple makes it
    itself); ``expected`` is an independent reference from arrays to an array or a tuple of arrays."""

    name: str
    build: Callable[..., Any]
    inputs: Sequence[Input]
    expected: Callable[..., Any] | None = None
    rtol: float = 1e-5
    atol: float = 1e-6
    gradient: bool = False
    """Compare the gradient with finite differences (float inputs; the operator must be differentiable there)."""
    dynamic: bool = True
    """Run with every dimension of every input unknown, on the virtual machine."""
    constants: Sequence[int] = field(default=())
    """Inputs that the program holds as constants (the new shape of a dynamic reshape, say)."""
