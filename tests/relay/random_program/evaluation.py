"""What a random program computes, and how far rounding may carry it.

Every value is computed three times: as the operators' references give it, and twice with a little noise on the result
of every operator that rounds. Where noise changes a number much, or a decision at all, the value says nothing about a
compiler, and the generator leaves it out; elsewhere the spread of the three is the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Var
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.definition import OpPattern
from tilewright.support.recursion import recursion_room

Array = np.ndarray[Any, Any]

NOISE = {"float16": 2e-3, "float32": 3e-5, "float64": 1e-9}
"""The noise on a result, relative to it: some hundred times what rounding does."""
INNER_NOISE = 0.1
"""The noise on arguments, as a share of that on results."""
STEADY = {"float16": 5e-2, "float32": 5e-3, "float64": 1e-5}
"""How far noise may move a tensor, relative to its largest element."""
LARGEST = {"float16": 500.0, "float32": 1e4, "float64": 1e4}
DIFFERENCES = {"vision.multibox_prior"}
"""Operators that take rounded numbers from one another: what is zero in one order of steps is not in another."""
MOST_ELEMENTS = 4096
MOST_DIMENSIONS = 6


class NoisyInterpreter(Interpreter):
    """The reference interpreter with noise on every result that is rounded."""

    def __init__(self, module: IRModule | None, seed: int) -> None:
        super().__init__(module)
        self.random = np.random.default_rng(seed)

    def visit_call(self, node: Call) -> Any:
        """Operators that move data do not round. Those that combine many elements round on the way as well: for them,
        a little noise on the arguments shows what that does."""
        kind = node.op.get_attr("TOpPattern") if isinstance(node.op, Op) else OpPattern.INJECTIVE
        if isinstance(node.op, Op) and node.op.name in DIFFERENCES:
            return self._shifted(super().visit_call(node))
        if kind == OpPattern.INJECTIVE:
            return super().visit_call(node)
        if kind < OpPattern.COMM_REDUCE:
            return self._stirred(super().visit_call(node))
        kept = {argument: self.visit(argument) for argument in node.args}
        computed = self.frame.computed
        computed.update({argument: self._stirred(value, INNER_NOISE) for argument, value in kept.items()})
        try:
            return self._stirred(super().visit_call(node))
        finally:
            computed.update(kept)

    def _stirred(self, value: Any, share: float = 1.0) -> Any:
        if isinstance(value, tuple):
            return tuple([self._stirred(part, share) for part in value])
        if not isinstance(value, np.ndarray) or str(value.dtype) not in NOISE:
            return value
        noise = share * NOISE[str(value.dtype)] * self.random.uniform(-1, 1, value.shape)
        return np.asarray(value * (1 + noise)).astype(value.dtype)

    def _shifted(self, value: Array) -> Array:
        noise = NOISE[str(value.dtype)] * self.random.uniform(-1, 1, value.shape)
        return np.asarray(value + noise * np.abs(value).max(initial=0)).astype(value.dtype)


@dataclass(frozen=True, eq=False)
class Value:
    """An expression, the array that it gives, and how far noise moved it."""

    expr: RelayExpr
    array: Array
    spread: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.array.shape)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.array.ndim

    @property
    def dtype(self) -> str:
        """The element type."""
        return str(self.array.dtype)

    def within(self, low: float, high: float) -> bool:
        """True if every element lies between two numbers."""
        return self.array.size == 0 or bool(self.array.min() >= low and self.array.max() <= high)


class Evaluation:
    """The three interpreters, each of which remembers what it has computed."""

    def __init__(self, module: IRModule, seed: int) -> None:
        self.machines = [
            Interpreter(module),
            NoisyInterpreter(module, 2 * seed + 1),
            NoisyInterpreter(module, 2 * seed + 2),
        ]

    def define(self, variable: Var, values: Mapping[int, Any] | Any) -> None:
        """Give a variable a value: one for all, or one for each interpreter."""
        for position, machine in enumerate(self.machines):
            machine.frame.variables[variable] = values[position] if isinstance(values, Mapping) else values

    def run(self, expr: RelayExpr) -> dict[int, Any]:
        """What each of the interpreters gives."""
        with recursion_room():
            return {position: machine.visit(expr) for position, machine in enumerate(self.machines)}

    def spread(self, results: list[Any]) -> float | None:
        """How far noise moved a tensor; None where it says nothing about a compiler."""
        exact, *noisy = results
        if not isinstance(exact, np.ndarray) or exact.size > MOST_ELEMENTS or exact.ndim > MOST_DIMENSIONS:
            return None
        kind = str(exact.dtype)
        if kind not in NOISE:
            same = all(one.shape == exact.shape and bool((one == exact).all()) for one in noisy)
            return 0.0 if same else None
        with np.errstate(all="ignore"):
            size = float(np.abs(exact).max(initial=0))
            if not np.isfinite(size) or size > LARGEST[kind]:
                return None
            moved = max(float(np.abs(one.astype("float64") - exact).max(initial=0)) for one in noisy)
        return moved if moved <= STEADY[kind] * size + 1e-6 else None


def tolerance(value: Array, spread: float) -> float:
    """How far a compiled program may be from a value."""
    kind = str(value.dtype)
    if kind not in NOISE:
        return 0.0
    return 4 * spread + NOISE[kind] * (float(np.abs(value).max(initial=0)) + 0.01)
