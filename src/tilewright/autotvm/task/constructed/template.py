"""The template of every task of Relay's operators: the constructed schedule of the function that a build makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.autotvm.task.constructed.function import GivenChoices, TaskFunction, task_function
from tilewright.autotvm.task.constructed.kinds import KINDS
from tilewright.autotvm.task.constructed.space import ConstructedSpace, Variant
from tilewright.autotvm.task.space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from tilewright.autotvm.task.task import TASK_TABLE, Scheduled, TaskTemplate, get_config
from tilewright.autotvm.task.workload import serialize_args
from tilewright.relay.backend.te_compiler import TensorProgram, tensor_expression
from tilewright.schedule.decisions import Decision, Decisions
from tilewright.support.errors import ScheduleError
from tilewright.target.target import Target

_BRANCHES = ("split_reduction", "along_columns", "fuse_rows", "producers_inside", "blocks")
"""Choices of schedules that decide which others there are."""
_MOST_VALUES = 16
"""Of a branching choice, the values that become variants."""


class ConstructedTemplate(TaskTemplate):
    """The schedule of a task with the choices of the current configuration."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Scheduled:
        """The schedule, and the tensors of the function: its inputs, then its results."""
        config = get_config()
        target = Target.current() or Target("llvm")
        given = choices_of(config)
        arguments = serialize_args(args)
        default = task_function(self.name, arguments, target)
        graph = {name: given[name] for name in default.asked if name in given}
        found = task_function(self.name, arguments, target, graph) if graph else default
        program, _ = constructed(found, target, given)
        return program.schedule, [*program.inputs, *program.outputs]

    def space(self, args: tuple[Any, ...], target: Target) -> ConstructedSpace:
        """All choices of the task's schedule."""
        default = task_function(self.name, args, target)
        variants: list[Variant] = []
        for graph in _assignments(default.asked):
            try:
                found = task_function(self.name, args, target, graph)
                variants += _variants(found, target)
            except ScheduleError:
                # This choice of a graph pass cannot be scheduled here.
                continue
        return ConstructedSpace(variants)


def _assignments(asked: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The values without tuning, then each other value of each choice."""
    usual = {name: values[0] for name, values in asked.items()}
    others = [{**usual, name: value} for name, values in asked.items() for value in values[1:]]
    return [usual, *others]


def _variants(found: TaskFunction, target: Target) -> list[Variant]:
    """A variant for the schedule as it is, and one for each other value of a choice that decides which others there
    are."""
    asked = constructed(found, target, {})[1]
    made = [_variant(found, asked, {})]
    for name, decision in asked.items():
        if _is_branch(name):
            for value in decision.candidates[1:_MOST_VALUES]:
                try:
                    below = constructed(found, target, {name: value})[1]
                except ScheduleError:
                    continue
                made.append(_variant(found, below, {name: value}))
    return made


def _is_branch(name: str) -> bool:
    return name.partition(".")[0] in _BRANCHES


def _variant(found: TaskFunction, asked: Mapping[str, Decision], given: Mapping[str, Any]) -> Variant:
    fixed = {name: decision.chosen for name, decision in asked.items() if _is_branch(name)}
    knobs = {
        name: decision.candidates
        for name, decision in asked.items()
        if not _is_branch(name) and len(decision.candidates) > 1
    }
    return Variant({**found.chosen, **fixed, **given}, knobs)


def constructed(
    found: TaskFunction, target: Target, given: Mapping[str, Any]
) -> tuple[TensorProgram, dict[str, Decision]]:
    """A function with its schedule, and the choices that the schedule made."""
    with target, GivenChoices({}, {}), Decisions(given) as decisions:
        program = tensor_expression(found.function, target)
    return program, decisions.asked


def choices_of(config: Any) -> dict[str, Any]:
    """The choices that a configuration has a value for."""
    if isinstance(config, ConfigEntity):
        return config.get_other_option()
    assert isinstance(config, (ConfigSpace, FallbackConfigEntity))
    return {}


for _name in KINDS:
    TASK_TABLE[_name] = ConstructedTemplate(_name)
