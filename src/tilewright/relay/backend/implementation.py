"""Which tensor expression and which schedule compute an operator on a target: what the table of strategies says."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tilewright.ir.op import Op
from tilewright.schedule import scheduler_for
from tilewright.schedule.tuning import untuned
from tilewright.strategy import OpImplementation, candidates, choose, has_registered, rows_of
from tilewright.support.errors import OpNotImplemented
from tilewright.target import Target
from tilewright.target.generic_func import GenericFunc


def get_valid_implementations(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target
) -> list[OpImplementation]:
    """All implementations for a target, the preferred one first."""
    found, _ = candidates(op, attrs, inputs, out_type, target)
    if not found:
        raise OpNotImplemented(f"operator {op.name} has no implementation for the target {target.kind.name}")
    return [one.implementation for one in found]


def select_implementation(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target, use_autotvm: bool = True
) -> tuple[OpImplementation, list[Any]]:
    """The implementation to take, and its output tensors; unless ``use_autotvm``, whatever was measured."""
    with nullcontext() if use_autotvm else untuned():
        choice, outputs = choose(op, attrs, inputs, out_type, target)
    return choice.implementation, outputs


def is_own(op: Op, target: Target) -> bool:
    """True if everything that decides an operator's code is part of this package: its code may be cached on disk, under
    a key that does not cover what users register."""
    if has_registered(op, target):
        return False
    strategy = op.get_attr("FTVMStrategy")
    relation = op.get_attr("TypeRelation")
    scheduler = scheduler_for(target)
    parts = [op.get_attr("FTVMCompute"), op.get_attr("FTVMSchedule"), op.get_attr("FShapeFunc")]
    parts += [scheduler.construct, *scheduler.special.values()]
    parts += [row.compute for row in rows_of(op.name, target)]
    parts.append(None if relation is None else relation[1])
    if isinstance(strategy, GenericFunc):
        parts.append(strategy.default)
        parts += [made for key, made in strategy.dispatch_dict.items() if key in target.keys]
    else:
        parts.append(strategy)
    return all(
        (getattr(part, "__module__", "") or "").startswith("tilewright.")
        for part in parts
        if part is not None
    )
