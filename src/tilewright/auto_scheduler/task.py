"""What is searched for: a workload on a target, and its form in records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, Self

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.hardware_params import HardwareParams
from tilewright.auto_scheduler.layout_rewrite import LayoutRewriteOption
from tilewright.auto_scheduler.task_inputs import register_task_input_buffer
from tilewright.auto_scheduler.workload_registry import (
    WORKLOAD_FUNC_REGISTRY,
    deserialize_workload_registry_entry,
    make_workload_key,
    register_workload_tensors,
    serialize_workload_registry_entry,
)
from tilewright.support.errors import ScheduleError, TargetError
from tilewright.support.node import Object
from tilewright.target.target import Target, TargetLike
from tilewright.te.schedule.schedule import Schedule

_DEFAULT_OPTIONS: Final = (" -link-params=0",)
"""Options that TVM 0.8 writes into every record, and that mean what leaving them out means."""
_HARDWARE_SIZES: Final = 8


class Task(Object):
    """A workload, its target and what is to be known of both. ``SearchTask`` adds the search; records give these."""

    def __init__(
        self,
        func: str | Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: TargetLike | None = None,
        target_host: TargetLike | None = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: int | None = None,
        task_inputs: Mapping[str, Any] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        if compute_dag is not None:
            self.compute_dag = compute_dag
            workload_key = workload_key or compute_dag.workload_key()
        if not workload_key:
            raise ScheduleError("a task needs a function and its arguments, a compute_dag or a workload_key")
        found = target if target is not None else Target.current()
        if found is None:
            raise ScheduleError(f"the task {workload_key} needs a target, such as target='llvm'")
        self.workload_key = workload_key
        self.target, self.target_host = Target.check_and_update_host_consist(found, target_host)
        self.hardware_params = hardware_params or HardwareParams(
            target=self.target, target_host=self.target_host
        )
        self.layout_rewrite_option = (
            LayoutRewriteOption.get_target_default(self.target)
            if layout_rewrite_option is None
            else LayoutRewriteOption(layout_rewrite_option)
        )
        self.desc = desc
        self.construct: Callable[[], Schedule] | None = None
        """What makes the schedule without search, where that is not just the graph's: for functions of a model."""
        self.task_input_names: list[str] = list(task_inputs or ())
        if isinstance(task_inputs, Mapping):
            for name, data in task_inputs.items():
                register_task_input_buffer(
                    workload_key, name, data, task_inputs_overwrite, task_inputs_save_to_file
                )
        if compute_dag is None and func is not None:
            # A wrong definition is an error here and not in the middle of a search.
            _ = self.compute_dag

    @cached_property
    def compute_dag(self) -> ComputeDAG:
        """The graph of the workload; an error if this program does not know the workload."""
        return ComputeDAG(self.workload_key)

    @property
    def is_known(self) -> bool:
        """True if this program knows the workload of the task."""
        if "compute_dag" in self.__dict__ or self.workload_key in WORKLOAD_FUNC_REGISTRY:
            return True
        try:
            name = json.loads(self.workload_key)[0]
        except (json.JSONDecodeError, IndexError, KeyError, TypeError):
            return False
        return isinstance(name, str) and name in WORKLOAD_FUNC_REGISTRY

    # -- records --------------------------------------------------------------------------------------------------

    def to_record(self) -> list[Any]:
        """The task as records have it."""
        host = self.target.host
        return [
            self.workload_key,
            str(self.target.with_host(None)),
            self.hardware_params.as_list(),
            "" if host is None else str(host),
            int(self.layout_rewrite_option),
            list(self.task_input_names),
        ]

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """The task of a record. Versions before 0.6 have fewer items."""
        if not isinstance(record, list) or not 2 <= len(record) <= 6:
            raise ScheduleError(f"{record!r} is not the record of a task, which is a list of 2 to 6 items")
        key, target = record[:2]
        if not isinstance(key, str) or not isinstance(target, str):
            raise ScheduleError("the record of a task does not begin with a workload and a target")
        host, option, names = (
            [*record[3:], *("", 1, [])[len(record[3:]) :]] if len(record) > 2 else ("", 1, [])
        )
        if not isinstance(host, str) or option not in set(LayoutRewriteOption):
            raise ScheduleError(f"the record of the task {key}: host {host!r}, layout option {option!r}")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ScheduleError(f"the record of the task {key}: {names!r} are not the names of task inputs")
        return cls(
            workload_key=key,
            target=_target(target),
            target_host=_target(host) if host else None,
            hardware_params=_hardware(record[2]) if len(record) > 2 else None,
            layout_rewrite_option=option,
            task_inputs=names,
        )

    def __getstate__(self) -> dict[str, Any]:
        if not self.is_known:
            raise ScheduleError(f"the workload {self.workload_key} is not registered in this program")
        registered = self.workload_key in WORKLOAD_FUNC_REGISTRY
        if not registered and "compute_dag" in self.__dict__ and not _has_function(self.workload_key):
            register_workload_tensors(self.workload_key, self.compute_dag.tensors)
        return {
            "record": self.to_record(),
            "workload": serialize_workload_registry_entry(self.workload_key),
            "desc": self.desc,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        deserialize_workload_registry_entry(state["workload"])
        self.__dict__.update(type(self).from_record(state["record"]).__dict__)
        self.desc = state["desc"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.workload_key}, {self.target})"


def _has_function(workload_key: str) -> bool:
    return json.loads(workload_key)[0] in WORKLOAD_FUNC_REGISTRY


@lru_cache(maxsize=256)
def _target(text: str) -> Target:
    """The target of a record; a file has few of them in many lines."""
    for option in _DEFAULT_OPTIONS:
        text = text.replace(option, "")
    try:
        return Target(text)
    except TargetError as error:
        raise ScheduleError(f"the record's target {text!r}: {error.message}") from error


def _hardware(sizes: Any) -> HardwareParams:
    if (
        not isinstance(sizes, list)
        or len(sizes) != _HARDWARE_SIZES
        or not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    ):
        raise ScheduleError(f"{sizes!r} are not the {_HARDWARE_SIZES} sizes of a machine")
    return HardwareParams(*sizes)
