"""Applies files of tuning records while a model is compiled, and says what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.search.kernel_records import KernelRecord, TunedKernels
from tilewright.search.records import Loaded, RecordFile


@dataclass(frozen=True)
class AppliedRecords:
    """What a build used of a file of records."""

    path: str
    records: int
    kernels: TunedKernels
    problems: str

    def lines(self) -> list[str]:
        """For people: how many kernels use records, and what was not used, and why."""
        used, known = len(self.kernels.used), len(self.kernels.best)
        if known == 0:
            text = "no record in it measured faster than the untuned schedule: nothing to apply"
        elif used == 0:
            text = f"none of the {known} kernels that it is about is in this model"
        else:
            text = "1 kernel uses a schedule" if used == 1 else f"{used} kernels use schedules"
            text += " that tuning found"
        found = [f"{self.path}: {text}"]
        reasons = list(dict.fromkeys(self.kernels.refused.values()))
        for reason in reasons[:3]:
            count = sum(one == reason for one in self.kernels.refused.values())
            found.append(
                f"{self.path}: the record of {count} kernel{'s' if count > 1 else ''} is not used: {reason}"
            )
        return [*found, *([self.problems] if self.problems else [])]


@contextmanager
def applied_records(path: str | None) -> Iterator[AppliedRecords | None]:
    """Compile with the records of a file within the block; with None, as ever."""
    if path is None:
        yield None
        return
    loaded = load_records(path)
    scope = TunedKernels(loaded.records)
    with scope:
        yield AppliedRecords(path, len(loaded.records), scope, loaded.summary(path))


def load_records(path: str) -> Loaded[KernelRecord]:
    """The records of a file; an error for a file that has none."""
    where = Path(path)
    if where.is_dir():
        raise TVMCException(f"{path} is a folder, not a file of tuning records")
    if not where.exists():
        raise TVMCException(f"there is no file {path}: 'tilewright tune MODEL -o {path}' makes one")
    try:
        loaded = RecordFile(where).read(KernelRecord.from_json)
    except OSError as problem:
        raise TVMCException(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if not loaded.records:
        first = f" (line {loaded.problems[0].number}: {loaded.problems[0].reason})" if loaded.problems else ""
        raise TVMCException(f"{path} has no tuning records{first}")
    return Loaded([one for one in loaded.records if one is not None], loaded.problems)
