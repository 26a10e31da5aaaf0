"""What went where, and why the rest did not."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.backend.byoc.partition import partition_for
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.backends import get_backend

COMPILED = "compiled"
"""The name of this compiler among the backends."""


@dataclass(frozen=True)
class Part:
    """A part of the model that a backend can compute, and who computes it. Times are seconds, None if not measured."""

    symbol: str
    backend: str
    operators: tuple[str, ...]
    seconds: float | None
    compiled_seconds: float | None
    is_taken: bool
    reason: str

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "symbol": self.symbol,
            "backend": self.backend,
            "operators": list(self.operators),
            "seconds": self.seconds,
            "compiled_seconds": self.compiled_seconds,
            "taken": self.is_taken,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Refusal:
    """Operators that stay with the compiler: how often, and each backend's reason."""

    operator: str
    count: int
    reasons: tuple[str, ...]


@dataclass(eq=False)
class Partition:
    """A partitioned module, and how it came about."""

    module: IRModule
    backends: tuple[str, ...]
    parts: list[Part] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    """Seconds of the whole model by who computes it, where they were measured."""
    chosen: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "backends": list(self.backends),
            "chosen": self.chosen,
            "seconds": self.totals,
            "parts": [part.as_json() for part in self.parts],
            "refused": [
                {"operator": one.operator, "count": one.count, "reasons": list(one.reasons)}
                for one in self.refused
            ],
        }

    def text(self) -> str:
        """The report in lines of 80 columns."""
        lines = [f"backends: {', '.join(self.backends)}; chosen: {self.chosen}"]
        lines += [f"  the model, {name}: {_time(seconds)}" for name, seconds in self.totals.items()]
        for part in self.parts:
            lines.append(f"  {part.symbol} ({part.backend}): {'taken' if part.is_taken else 'not taken'}")
            counted = Counter(part.operators)
            names = ", ".join(name if times == 1 else f"{times} {name}" for name, times in counted.items())
            lines += textwrap.wrap(names, 76, initial_indent="    ", subsequent_indent="    ")
            if part.seconds is not None:
                lines.append(
                    f"    {_time(part.seconds)} by {part.backend}, {_time(part.compiled_seconds)} compiled"
                )
            lines += textwrap.wrap(part.reason, 76, initial_indent="    ", subsequent_indent="    ")
        if self.refused:
            lines.append("  left to the compiler:")
        for one in self.refused:
            lines += textwrap.wrap(
                f"{one.operator} ({one.count}): {'; '.join(one.reasons)}",
                76,
                initial_indent="    ",
                subsequent_indent="      ",
            )
        return "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "not measured"
    return f"{1e3 * seconds:.3f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us"


def refusals(prepared: IRModule, backends: Sequence[str]) -> list[Refusal]:
    """The operators of a typed module that no backend takes, with every backend's reason."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    checks = [(name, get_backend(name).refusals_in(prepared)) for name in backends]
    for expr in post_order(prepared["main"].body):
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        reasons = []
        for name, why_not in checks:
            reason = why_not(expr)
            if reason is None:
                break
            reasons.append(reason if reason.startswith(name) else f"{name}: {reason}")
        else:
            found[(expr.op.name, tuple(reasons))] += 1
    left = _operators_left(partition_for(prepared, backends, is_prepared=True))
    made = []
    for (operator, why), count in found.items():
        # What is refused by itself may still be taken as a piece of a larger pattern.
        staying = min(count, left[operator])
        left[operator] -= staying
        if staying:
            made.append(Refusal(operator, staying, why))
    return made


def _operators_left(partitioned: IRModule) -> Counter[str]:
    """How often each operator occurs outside the parts of backends."""
    return Counter(
        expr.op.name
        for expr in post_order(partitioned["main"].body)
        if isinstance(expr, Call) and isinstance(expr.op, Op)
    )
