"""Which tensor expression and which schedule compute an operator on a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.op import Op
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.op import SCHEDULE_OF_KIND, OpImplementation, OpStrategy, schedule_default
from tilewright.support.errors import OpNotImplemented
from tilewright.target import Target
from tilewright.target.generic_func import GenericFunc


def get_valid_implementations(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target
) -> list[OpImplementation]:
    """All implementations for a target, the one to take first: those of the operator's strategy, or the one that its
    definition makes."""
    strategy = op.get_attr("FTVMStrategy")
    if strategy is not None:
        function = strategy.get_function(target) if isinstance(strategy, GenericFunc) else strategy
        with target:
            made = function(attrs, inputs, out_type, target)
        if not isinstance(made, OpStrategy):
            raise OpNotImplemented(f"the strategy of {op.name} gave {type(made).__name__}, not an OpStrategy")
        if made.implementations:
            return made.implementations
    compute = op.get_attr("FTVMCompute")
    if compute is None:
        raise OpNotImplemented(f"operator {op.name} has no implementation for the target {target.kind.name}")
    kind = OpPattern(op.get_attr("TOpPattern") or OpPattern.OPAQUE)
    schedule = op.get_attr("FTVMSchedule") or SCHEDULE_OF_KIND.get(kind, schedule_default)
    return [OpImplementation(compute, schedule, op.name, 10)]


def select_implementation(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target, use_autotvm: bool = True
) -> tuple[OpImplementation, list[Any]]:
    """The implementation to take, and its output tensors."""
    chosen = get_valid_implementations(op, attrs, inputs, out_type, target)[0]
    with target:
        return chosen, chosen.compute(attrs, inputs, out_type)


def is_own(op: Op) -> bool:
    """True if everything that decides an operator's code is part of this package: its code may be kept on disk, under a
    key that knows nothing of what users register."""
    strategy = op.get_attr("FTVMStrategy")
    relation = op.get_attr("TypeRelation")
    parts = [op.get_attr("FTVMCompute"), op.get_attr("FTVMSchedule"), op.get_attr("FShapeFunc")]
    parts.append(None if relation is None else relation[1])
    if isinstance(strategy, GenericFunc):
        parts += [strategy.default, *strategy.dispatch_dict.values()]
    else:
        parts.append(strategy)
    return all(
        (getattr(part, "__module__", "") or "").startswith("tilewright.")
        for part in parts
        if part is not None
    )
