"""The schedule that fits every graph of tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.schedule.cpu.schedule import construct_schedule
from tilewright.target.generic_func import DispatchedFunction, generic_func
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.tensor import Tensor

Outputs = Tensor | Sequence[Tensor]


def schedule_default(outs: Outputs) -> Schedule:
    """A constructed schedule for the current target: what is cheap inlined, the rest in vectors and in parallel."""
    return construct_schedule(outs)


def default_schedule(outs: Outputs, auto_inline: bool) -> Schedule:
    """Every stage in plain loops at the root; with ``auto_inline``, what computes no reduction put into its readers."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    schedule = create_schedule([tensor.op for tensor in tensors])
    if auto_inline:
        auto_inline_injective(schedule)
    return schedule


def constructed(operator: str) -> DispatchedFunction:
    """The generic function that schedules an operator: constructed, unless a target registers another."""

    def schedule(outs: Outputs, *layouts: Any) -> Schedule:
        return schedule_default(outs)

    return generic_func(named(schedule, operator))


def named(schedule: Callable[..., Schedule], operator: str) -> Callable[..., Schedule]:
    """Give a function the name and the text of an operator's schedule."""
    schedule.__name__ = schedule.__qualname__ = f"schedule_{operator}"
    schedule.__doc__ = f"The schedule of {operator} with what is fused to it, given its outputs."
    return schedule
