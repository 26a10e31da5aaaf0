"""The time of the constructed schedule in files of records, so that nothing slower is ever applied.

A record says how fast a candidate was, not what it was compared with. Before the records of a task, a search therefore
writes how fast the constructed schedule was, as a comment, which TVM's readers skip:

    # untuned ["WORKLOAD", "TARGET'S KIND", SECONDS]

It holds for the records of that workload that follow it. A state that was measured several times counts as it was
measured last: the best candidates of a search are measured again at its end, in turns with the constructed schedule.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.auto_scheduler.measure_record import load_record_from_string
from tilewright.auto_scheduler.measure_types import MeasureErrorNo, MeasureInput
from tilewright.auto_scheduler.untuned_note import UNTUNED
from tilewright.search.records import RecordFile
from tilewright.support.errors import TilewrightError

logger = logging.getLogger("auto_scheduler")

Key = tuple[str, str]
"""A workload and the kind of a target."""


@dataclass(frozen=True)
class Comparison:
    """A measured state, its time, and that of the constructed schedule then; infinite where it is not known."""

    measured: MeasureInput
    cost: float
    untuned: float

    @property
    def is_faster(self) -> bool:
        """True if it may be applied."""
        return self.cost < self.untuned


def key_of(task: Any) -> Key:
    """What records of a task are found by."""
    return task.workload_key, task.target.kind.name


def read_note(text: str) -> tuple[Key, float] | None:
    """The workload and the time of a comment that is a note."""
    if not text.startswith(UNTUNED):
        return None
    try:
        workload, kind, seconds = json.loads(text[len(UNTUNED) :])
    except ValueError:
        return None
    return (str(workload), str(kind)), float(seconds)


def _is_of_a_template(line: str) -> bool:
    """True for a record in AutoTVM's format."""
    return line.startswith('{"input":') and '"config":' in line


def read_comparisons(path: str | Path, most: int | None = None) -> Iterator[Comparison]:
    """The records of a file that were measured, each with the time of the constructed schedule. Records of templates,
    which one file may hold as well, are passed over; lines that are no records are reported once."""
    untuned: dict[Key, float] = {}
    found: dict[tuple[Key, Any], Comparison] = {}
    bad: list[str] = []
    count = 0
    for line in RecordFile(path).lines(comments=True):
        note = read_note(line.text)
        if note is not None:
            untuned[note[0]] = note[1]
        if line.text.startswith("#") or _is_of_a_template(line.text):
            continue
        if most is not None and count >= most:
            break
        try:
            measured, result = load_record_from_string(line.text)
        except TilewrightError as error:
            bad.append(f"line {line.number}: {error.message}")
            continue
        count += 1
        key = key_of(measured.task)
        cost = result.mean if result.error_no == MeasureErrorNo.NO_ERROR else math.inf
        found[key, measured.state.transform_steps] = Comparison(measured, cost, untuned.get(key, math.inf))
    if bad:
        logger.warning("%s: %d lines are no records and are skipped; %s", path, len(bad), bad[0])
    return (one for one in found.values() if math.isfinite(one.cost))


def best_comparison(path: str | Path, task: Any) -> Comparison | None:
    """The fastest record of a task; None if there is none."""
    wanted = key_of(task)
    mine = [one for one in read_comparisons(path) if key_of(one.measured.task) == wanted]
    return min(mine, key=lambda one: one.cost, default=None)
