"""The fused function that a task's call becomes in a build: the one that holds the heavy operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.autotvm.task.constructed.kinds import KINDS, PACKED, WHOLE
from tilewright.autotvm.task.workload import deserialize_args
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay.backend.preparation import prepared
from tilewright.relay.backend.targets import build_targets
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.pipeline import fusing_passes
from tilewright.schedule.tuning import GraphDecision, ScheduleRequest, TuningScope
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule

_LEVEL = 3
_PLAIN = {
    "nn.contrib_conv2d_NCHWc": "nn.conv2d",
    "nn.contrib_depthwise_conv2d_NCHWc": "nn.conv2d",
    "nn.contrib_conv2d_winograd_without_weight_transform": "nn.conv2d",
    "nn.contrib_dense_pack": "nn.dense",
}
"""The operators that graph passes compute others with."""


class GivenChoices(TuningScope):
    """Answers the choices of graph passes with given values, and keeps what was asked. Schedules are constructed, also
    within scopes that know better: they are what a tuner changes."""

    def __init__(self, given: Mapping[str, Any], fixed: Mapping[str, str]) -> None:
        self.given = given
        self.fixed = fixed
        self.asked: dict[str, tuple[Any, ...]] = {}
        self.constructed: dict[str, Any] = {}

    def schedule(self, request: ScheduleRequest) -> Schedule | None:
        """The constructed schedule."""
        return request.construct()

    def graph_choice(self, decision: GraphDecision) -> Any:
        """The given value, among those that the kind of task allows."""
        allowed = self._allowed(decision)
        self.asked.setdefault(decision.name, allowed)
        self.constructed.setdefault(decision.name, decision.constructed)
        return self.given.get(decision.name, allowed[0])

    def _allowed(self, decision: GraphDecision) -> tuple[Any, ...]:
        """The possible values, the one without tuning first."""
        wanted = self.fixed.get(decision.name)
        values = tuple(dict.fromkeys((decision.constructed, *decision.candidates)))
        if wanted == WHOLE:
            values = tuple(value for value in values if value == 0)
        elif wanted == PACKED:
            values = tuple(value for value in values if value != 0)
        return values or (decision.constructed,)


@dataclass(frozen=True)
class TaskFunction:
    """The fused function of a task, and the choices that graph passes made for it, with what was possible."""

    function: Function
    asked: Mapping[str, tuple[Any, ...]]
    chosen: Mapping[str, Any]


@dataclass
class _Cache:
    made: dict[Any, TaskFunction] = field(default_factory=dict)


_CACHE = _Cache()
_MOST_KEPT = 256


def task_function(
    name: str, args: tuple[Any, ...], target: Target, given: Mapping[str, Any] | None = None
) -> TaskFunction:
    """The function of a task with some choices given; each is made once."""
    key = (name, args, str(target), tuple(sorted((given or {}).items())))
    if key not in _CACHE.made:
        if len(_CACHE.made) >= _MOST_KEPT:
            _CACHE.made.clear()
        _CACHE.made[key] = _made(name, args, target, given or {})
    return _CACHE.made[key]


def _made(name: str, args: tuple[Any, ...], target: Target, given: Mapping[str, Any]) -> TaskFunction:
    kind = KINDS[name]
    call, parameters = kind.call(*deserialize_args(args))
    module = IRModule.from_expr(Function(parameters, call))
    scope = GivenChoices(given, kind.fixed)
    with PassContext(opt_level=_LEVEL), scope:
        whole = prepared(module, build_targets(target), {})
        fused = Sequential(fusing_passes(target))(whole)
    return TaskFunction(
        _main_function(fused, kind.operator),
        scope.asked,
        {choice: given.get(choice, values[0]) for choice, values in scope.asked.items()},
    )


def _main_function(module: IRModule, operator: str) -> Function:
    """Of the fused functions, the one with the operator, blocked or not; else the last with a heavy operator, else with
    a reduction, else any. What comes before it prepares the weight, which a build does once."""
    best: tuple[int, Function] | None = None
    for part in post_order(module["main"].body):
        function = part.op if isinstance(part, Call) else None
        if not isinstance(function, Function):
            continue
        ranks = [
            _rank(inner.op, operator)
            for inner in post_order(function.body)
            if isinstance(inner, Call) and isinstance(inner.op, Op)
        ]
        if ranks and (best is None or max(ranks) >= best[0]):
            best = (max(ranks), function)
    if best is None:
        raise TilewrightError("nothing of this call is computed: it is a constant, or a view of its argument")
    return best[1]


def _rank(op: Op, wanted: str) -> int:
    if _PLAIN.get(op.name, op.name) == wanted:
        return int(OpPattern.OPAQUE)
    return min(int(op.get_attr("TOpPattern") or 0), int(OpPattern.OUT_ELEMWISE_FUSABLE))
