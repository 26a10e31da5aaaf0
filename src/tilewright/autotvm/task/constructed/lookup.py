"""Uses what tuning found when a model is built: for implementations, for choices of graph passes, and for schedules.

A configuration whose knobs are not the choices of a schedule here, as of a record that TVM made, is translated where
that is possible (``foreign``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.autotvm.task.constructed.description import Description, described
from tilewright.autotvm.task.constructed.foreign import is_foreign, translated
from tilewright.autotvm.task.constructed.kinds import KINDS, PACKED, WHOLE, workloads_of
from tilewright.autotvm.task.space import ConfigEntity
from tilewright.autotvm.task.topi_integration import get_workload
from tilewright.schedule.decisions import Decisions
from tilewright.schedule.tuning import GraphDecision, ImplementationRequest, ScheduleRequest
from tilewright.support.errors import ScheduleError
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule

_WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"

Workload = tuple[Any, ...]
Known = Callable[[Target, Workload], Any]
"""From a target and a workload to the configuration that was found for it, or None."""


@dataclass
class Fit:
    """How records fitted the schedules of a build: workloads whose records were used as they are, in part, or not."""

    used: set[Workload] = field(default_factory=set)
    partly: dict[Workload, str] = field(default_factory=dict)
    refused: dict[Workload, str] = field(default_factory=dict)

    def summary(self) -> str:
        """One sentence about what did not fit; empty if everything did."""
        if not self.partly and not self.refused:
            return ""
        total = len(self.used) + len(self.partly) + len(self.refused)
        first = next(iter([*self.refused.values(), *self.partly.values()]))
        return (
            f"of the tuning records for {total} workloads, {len(self.refused)} do not fit the schedules here and "
            f"{len(self.partly)} fit in part (the first: {first})"
        )


def tuned_construction(request: ScheduleRequest, known: Known, fit: Fit) -> Schedule | None:
    """The constructed schedule with the choices that were found for the function's workload; None if there are none."""
    if get_workload(request.outputs) is not None:
        # It was computed by a user's template, which asks for its configuration itself.
        return None
    call = described(request.operator, request.attrs, request.inputs)
    found = None if call is None else _best(call, request.target, known, request.operator)
    if found is None:
        return None
    workload, config = found
    if is_foreign(config):
        return _from_foreign(request, workload, config, fit)
    choices = config.get_other_option()
    algorithm = choices.pop("algorithm", None)
    choices.pop("block", None)
    if algorithm is not None and (algorithm != 0) != (request.operator == _WINOGRAD):
        fit.refused[workload] = (
            f"{workload[0]} was tuned for another algorithm, as builds with opt_level=3 use it"
        )
        return None
    try:
        with Decisions(choices) as decisions:
            made = request.construct()
    except ScheduleError as problem:
        fit.refused[workload] = f"{workload[0]}: {problem}"
        return None
    if decisions.unused:
        fit.partly[workload] = f"{workload[0]} has no choice {', '.join(decisions.unused)} in this function"
    else:
        fit.used.add(workload)
    return made


def _from_foreign(request: ScheduleRequest, workload: Workload, config: Any, fit: Fit) -> Schedule | None:
    with Decisions() as decisions:
        request.construct()
    choices, missing = translated(workload[0], config, decisions.asked)
    if not choices:
        fit.refused[workload] = f"{workload[0]} has the knobs {', '.join(missing)}"
        return None
    try:
        with Decisions(choices):
            made = request.construct()
    except ScheduleError as problem:
        fit.refused[workload] = str(problem)
        return None
    if missing:
        fit.partly[workload] = f"{workload[0]} has the knobs {', '.join(missing)}"
    else:
        fit.used.add(workload)
    return made


def _best(
    call: Description, target: Target, known: Known, operator: str | None = None
) -> tuple[Workload, Any] | None:
    """The workload of a call that is known to be fastest, with its configuration. Where an operator stands for one of
    several kinds of tasks, it is of that kind."""
    best: tuple[Workload, Any] | None = None
    for workload in workloads_of(call, target):
        if operator is not None and not _is_of(workload[0], operator):
            continue
        config = known(target, workload)
        if isinstance(config, ConfigEntity) and (best is None or _cost(config) < _cost(best[1])):
            best = (workload, config)
    return best


def _cost(config: Any) -> float:
    return float("inf") if config.cost is None else float(config.cost)


def _is_of(name: str, operator: str) -> bool:
    """True unless a task fixes another form of the weight than an operator has."""
    wanted = KINDS[name].fixed.get("block")
    if wanted is None:
        return True
    return (wanted == PACKED) == (operator == "nn.contrib_dense_pack")


def measured_seconds(request: ImplementationRequest, known: Known) -> float | None:
    """What an implementation of a user's strategy was measured to take."""
    workload = get_workload(request.outputs)
    if workload is None:
        return None
    config = known(request.target, workload)
    return None if config is None or config.is_fallback or config.cost is None else float(config.cost)


def graph_choice(decision: GraphDecision, known: Known) -> Any:
    """What was found for a choice of a graph pass; None if nothing was."""
    call = described(decision.operator, decision.attrs, decision.types)
    found = None if call is None else _best(call, decision.target, known)
    if found is None:
        return None
    workload, config = found
    choices = {} if is_foreign(config) else config.get_other_option()
    fixed = KINDS[workload[0]].fixed.get(decision.name)
    if decision.name in choices:
        return choices[decision.name]
    if fixed == WHOLE:
        return 0
    if fixed == PACKED:
        return next((value for value in (decision.constructed, *decision.candidates) if value), None)
    return None
