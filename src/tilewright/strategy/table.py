"""The strategy table: how an operator is computed and scheduled for a target, and why.

A row gives an operator another computation, or another schedule, than its definition under targets with a key. It
applies unless its predicate gives a reason against it; the reasons are recorded, so that a build can report why a row
was passed over. An operator without an applicable row has the computation of its definition and the scheduler of the
target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.op import Op
from tilewright.schedule import schedule, scheduler_for
from tilewright.schedule.tuning import ImplementationRequest, is_tuned, measured_seconds
from tilewright.strategy import cpu, gpu, libraries, tensor_core
from tilewright.strategy.implementation import DEFAULT_LEVEL, OpImplementation, OpStrategy
from tilewright.strategy.registered import kind_of, schedule_for, strategy_for
from tilewright.strategy.row import Row
from tilewright.support.errors import OpNotImplemented
from tilewright.target.generic_func import DispatchedFunction, GenericFunc
from tilewright.target.target import Target

DEFINITION = "the operator's definition"


@dataclass(frozen=True)
class Refusal:
    """An implementation that was passed over, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Candidate:
    """An implementation that applies."""

    implementation: OpImplementation
    computation: str
    reason: str
    scheduler: str | None = None
    """The name of its schedule, if it does not use the target's scheduler."""


@dataclass(frozen=True)
class Choice:
    """The implementation that was chosen for a call, and those that were passed over."""

    operator: str
    implementation: OpImplementation
    computation: str
    scheduler: str
    reason: str
    refused: tuple[Refusal, ...]

    @property
    def name(self) -> str:
        """The name of the row, or of the user's implementation; the operator's for its definition."""
        return self.implementation.name


_ROWS: dict[str, list[Row]] = {}


def add_row(row: Row) -> None:
    """Add a row. Of the applicable rows, the one with the highest level is chosen; among equals, the first."""
    _ROWS.setdefault(row.operator, []).append(row)


def rows_of(operator: str, target: Target) -> list[Row]:
    """The rows of an operator under a target: those of its first key first, then by level."""
    keys = (*target.libs, *target.keys, target.kind.name)
    found = [row for row in _ROWS.get(operator, ()) if row.key in keys]
    return sorted(found, key=lambda row: (-row.plevel, keys.index(row.key)))


def all_rows() -> list[Row]:
    """Every row of the table."""
    return [row for rows in _ROWS.values() for row in rows]


def by_target(attrs: Any, outs: Any, target: Target) -> Any:
    """The schedule that the target's scheduler constructs."""
    return schedule(outs, target)


def scheduled_as(kind: str) -> Callable[[Any, Any, Target], Any]:
    """(attrs, outs, target) to the schedule of a kind of operators: what was registered for it, else the target's."""

    def scheduled(attrs: Any, outs: Any, target: Target) -> Any:
        """The schedule that was registered for this kind of operators under a key of the target, else the target's."""
        registered = schedule_for(kind, target)
        return (
            by_target(attrs, outs, target) if registered is None else registered.schedule(attrs, outs, target)
        )

    return scheduled


def candidates(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target
) -> tuple[list[Candidate], list[Refusal]]:
    """All implementations that apply to a call, the preferred one first, and the rows that do not apply."""
    rows = rows_of(op.name, target)
    strategy = _user_strategy(op, target)
    if strategy is not None:
        with target:
            made = strategy(attrs, inputs, out_type, target)
        if not isinstance(made, OpStrategy):
            raise OpNotImplemented(
                f"the strategy of {op.name} returned {type(made).__name__}, not an OpStrategy"
            )
        if made.implementations:
            return [_from_user(one) for one in made.implementations], [
                Refusal(row.name, f"a strategy was registered for {op.name}") for row in rows
            ]
    definition, own = _definition(op, attrs, inputs, target)
    if own is not None and definition is not None:
        return [definition], [Refusal(row.name, own) for row in rows]
    found: list[Candidate] = []
    refused: list[Refusal] = []
    with target:
        for row in rows:
            problem = row.predicate(attrs, inputs, out_type, target)
            if problem is None:
                found.append(_from_row(row))
            else:
                refused.append(Refusal(row.name, problem))
    found += [] if definition is None else [definition]
    return sorted(found, key=lambda one: -one.implementation.plevel), refused


def choose(
    op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target
) -> tuple[Choice, list[Any]]:
    """The implementation that is chosen for a call, and its output tensors."""
    found, refused = candidates(op, attrs, inputs, out_type, target)
    if not found:
        raise OpNotImplemented(f"operator {op.name} has no implementation for the target {target.kind.name}")
    measured = None
    if is_tuned() and len(found) > 1 and _user_strategy(op, target) is not None:
        measured = _fastest_measured(found, op, attrs, inputs, out_type, target)
    if measured is None:
        taken = found[0]
        with target:
            outputs = taken.implementation.compute(attrs, inputs, out_type)
    else:
        taken, outputs = measured
    refused += [
        Refusal(other.implementation.name, _comes_after(other, taken))
        for other in found
        if other is not taken
    ]
    scheduler = taken.scheduler or scheduler_for(target).name_for(outputs)
    choice = Choice(op.name, taken.implementation, taken.computation, scheduler, taken.reason, tuple(refused))
    return choice, outputs


def _fastest_measured(
    found: Sequence[Candidate],
    op: Op,
    attrs: Any,
    inputs: Sequence[Any],
    out_type: Any,
    target: Target,
) -> tuple[Candidate, list[Any]] | None:
    """The implementation that a tuner measured to be the fastest; None if it measured none of them."""
    best: tuple[float, Candidate, list[Any]] | None = None
    for candidate in found:
        with target:
            outputs = candidate.implementation.compute(attrs, inputs, out_type)
        name = candidate.implementation.name
        seconds = measured_seconds(ImplementationRequest(op.name, name, attrs, inputs, outputs, target))
        if seconds is not None and (best is None or seconds < best[0]):
            best = (seconds, candidate, outputs)
    return None if best is None else best[1:]


def strategy_of(op: Op, attrs: Any, inputs: Sequence[Any], out_type: Any, target: Target) -> OpStrategy:
    """The table and the definition for a call, as a strategy that a user's strategy can extend."""
    made = OpStrategy()
    for row in rows_of(op.name, target):
        with target:
            problem = row.predicate(attrs, inputs, out_type, target)
        if problem is None:
            made.add_implementation(row.compute, row.schedule or by_target, row.name, row.plevel)
    definition, _ = _definition(op, attrs, inputs, target)
    if definition is not None:
        one = definition.implementation
        made.add_implementation(one.compute_function, one.schedule_function, one.name, one.plevel)
    return made


def _comes_after(other: Candidate, taken: Candidate) -> str:
    if other.implementation.plevel > taken.implementation.plevel:
        return f"{taken.implementation.name} was measured to be faster"
    if other.implementation.plevel < taken.implementation.plevel:
        return f"its level {other.implementation.plevel} is below {taken.implementation.plevel}"
    return f"{taken.implementation.name} comes before it"


def _user_strategy(op: Op, target: Target) -> Callable[..., Any] | None:
    """The strategy that a user set for the operator, or registered for it under a key of the target."""
    attribute = op.get_attr("FTVMStrategy")
    if isinstance(attribute, DispatchedFunction):
        attribute = attribute.generic
    if isinstance(attribute, GenericFunc):
        return attribute.get_function(target)
    return strategy_for(op.name, target) if attribute is None else attribute


def _definition(
    op: Op, attrs: Any, inputs: Sequence[Any], target: Target
) -> tuple[Candidate | None, str | None]:
    """The computation of the definition with its schedule; and, if a user registered one of the two, the reason why it
    takes precedence over the rows."""
    compute = op.get_attr("FTVMCompute")
    if compute is None:
        return None, None
    scheduled, scheduler, own = by_target, None, None
    registered = schedule_for(op.name, target, attrs, inputs)
    attribute = op.get_attr("FTVMSchedule")
    if attribute is not None:
        scheduled, scheduler = attribute, _name_of(attribute)
        own = f"a schedule was registered for {op.name}"
    elif registered is not None:
        scheduled, scheduler = registered.schedule, registered.name or _name_of(registered.schedule)
        own = f"a schedule was registered for {op.name} under the key {registered.key!r}"
    else:
        of_kind = schedule_for(kind_of(op), target)
        if of_kind is not None:
            scheduled, scheduler = of_kind.schedule, of_kind.name or _name_of(of_kind.schedule)
    if compute is not op.get_attr("FDefinedCompute"):
        own = f"a computation was registered for {op.name}"
    implementation = OpImplementation(compute, scheduled, op.name, DEFAULT_LEVEL)
    reason = own or "no row of the table applies"
    return Candidate(implementation, DEFINITION, reason, scheduler), own


def _from_row(row: Row) -> Candidate:
    implementation = OpImplementation(row.compute, row.schedule or by_target, row.name, row.plevel)
    scheduler = None if row.schedule is None else _name_of(row.schedule)
    return Candidate(implementation, row.computation, row.reason, scheduler)


def _from_user(one: OpImplementation) -> Candidate:
    return Candidate(
        one, _name_of(one.compute_function), "a strategy was registered", _name_of(one.schedule_function)
    )


def _name_of(function: Any) -> str:
    """The qualified name of a function, without the package."""
    module = str(getattr(function, "__module__", "") or "").removeprefix("tilewright.")
    name = str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")
    return f"{module}.{name}" if module else name


for _row in (*cpu.ROWS, *gpu.ROWS, *tensor_core.ROWS, *libraries.ROWS):
    add_row(_row)
