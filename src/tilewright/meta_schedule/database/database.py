"""Databases of tuning: which workloads there are, and what their schedules measured."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.serialize import load_json, save_json
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.utils import require_overridden
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object
from tilewright.target.target import Target, TargetLike
from tilewright.tir.schedule.schedule import Schedule
from tilewright.tir.schedule.trace import Trace


class Workload(Object):
    """A module to tune. Two of the same structure are the same workload."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.shash = structural_hash(mod)

    def as_json(self) -> list[str]:
        """The hash, and the module as text."""
        return [str(self.shash), base64.b64encode(save_json(self.mod).encode()).decode()]

    @staticmethod
    def from_json(json_obj: Any) -> Workload:
        """What ``as_json`` wrote."""
        try:
            digest, text = json_obj
            made = Workload(load_json(base64.b64decode(text).decode()))
        except (TypeError, ValueError) as problem:
            raise TilewrightError(
                f"this is not what Workload.as_json gives, a hash and a module: {problem}"
            ) from problem
        if str(made.shash) != str(digest):
            raise TilewrightError(f"the module of workload {digest} has another hash, {made.shash}")
        return made


class TuningRecord(Object):
    """What a schedule of a workload measured on a target."""

    def __init__(
        self,
        trace: Trace,
        run_secs: Sequence[float],
        workload: Workload,
        target: TargetLike,
        args_info: Sequence[ArgInfo],
    ) -> None:
        self.trace = trace
        self.run_secs = [float(one) for one in run_secs]
        self.workload = workload
        self.target = Target(target)
        self.args_info = list(args_info)

    @property
    def mean_seconds(self) -> float:
        """The mean of the measurements; infinite where there are none."""
        return sum(self.run_secs) / len(self.run_secs) if self.run_secs else float("inf")

    def as_json(self) -> list[Any]:
        """Steps, seconds, target and arguments, for JSON."""
        return [
            self.trace.as_json(),
            self.run_secs,
            self.target.export(),
            [info.as_json() for info in self.args_info],
        ]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """What ``as_json`` wrote of a schedule of this workload."""
        try:
            steps, seconds, target, arguments = json_obj
        except (TypeError, ValueError) as problem:
            raise TilewrightError(
                "this is not what TuningRecord.as_json gives: steps, seconds, target and arguments"
            ) from problem
        schedule = Schedule(workload.mod)
        Trace.apply_json_to_schedule(steps, schedule)
        return TuningRecord(
            schedule.trace, seconds, workload, Target(target), [ArgInfo.from_json(one) for one in arguments]
        )


class Database(Object):
    """What remembers workloads and records."""

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a module, which is added if it is not there."""
        raise NotImplementedError(f"{type(self).__name__} has no method commit_workload")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        raise NotImplementedError(f"{type(self).__name__} has no method commit_tuning_record")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, at most so many, the fastest first."""
        raise NotImplementedError(f"{type(self).__name__} has no method get_top_k")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no method __len__")

    def __bool__(self) -> bool:
        # A database without records is still one.
        return True


class PyDatabase(Database):
    """The base of databases that programs write."""

    def __init__(self) -> None:
        names = ("commit_workload", "commit_tuning_record", "get_top_k", "__len__")
        require_overridden(self, Database, names)


class JSONDatabase(PyDatabase):
    """A database in two files, with one JSON value a line: the workloads, and the records with the number of theirs.
    Files that exist are read; others are created if ``allow_missing``."""

    def __init__(self, path_workload: str, path_tuning_record: str, allow_missing: bool = True) -> None:
        super().__init__()
        self.path_workload = str(path_workload)
        self.path_tuning_record = str(path_tuning_record)
        self._workloads = [Workload.from_json(one) for one in _lines(self.path_workload, allow_missing)]
        self._records: list[TuningRecord] = []
        for number, written in _lines(self.path_tuning_record, allow_missing):
            if not 0 <= number < len(self._workloads):
                raise TilewrightError(
                    f"{self.path_tuning_record} has a record of workload {number}, "
                    f"and {self.path_workload} has {len(self._workloads)}"
                )
            self._records.append(TuningRecord.from_json(written, self._workloads[number]))

    def commit_workload(self, mod: IRModule) -> Workload:
        made = Workload(mod)
        for known in self._workloads:
            if known.shash == made.shash and structural_equal(known.mod, mod):
                return known
        self._workloads.append(made)
        _append(self.path_workload, made.as_json())
        return made

    def commit_tuning_record(self, record: TuningRecord) -> None:
        workload = self.commit_workload(record.workload.mod)
        self._records.append(record)
        _append(self.path_tuning_record, [self._workloads.index(workload), record.as_json()])

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        known = self.commit_workload(workload.mod)
        found = [one for one in self._records if self._is_of(one, known)]
        return sorted(found, key=lambda one: one.mean_seconds)[: int(top_k)]

    def _is_of(self, record: TuningRecord, workload: Workload) -> bool:
        return record.workload is workload or self.commit_workload(record.workload.mod) is workload

    def __len__(self) -> int:
        return len(self._records)


def _lines(name: str, allow_missing: bool) -> list[Any]:
    """The values in a file."""
    path = Path(name)
    if not path.exists():
        if not allow_missing:
            raise TilewrightError(f"there is no file {path}; allow_missing=True creates it")
        path.touch()
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as problem:
            raise TilewrightError(f"{path}:{number} is not JSON: {problem}") from problem
    return found


def _append(name: str, value: Any) -> None:
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
