"""Records of what was measured, in TVM 0.8's format: one JSON object a line.

    {"i": [TASK, [[], STEPS]], "r": [COSTS, ERROR, SECONDS, TIMESTAMP], "v": "v0.6"}

``TASK`` is the workload, the target, eight sizes of the machine, the host's target, the layout option and the names of
task inputs; ``STEPS`` are lists that begin with the step's prefix (``["SP", 2, 0, 64, [4, 8], 1]``); ``COSTS`` are
seconds. ``python -m tilewright.auto_scheduler.measure_record --mode distill -i FILE`` keeps the best of each workload.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.auto_scheduler.compute_dag import ComputeDAG
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.measure_types import (
    MeasureCallback,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
)
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.auto_scheduler.steps import SplitStep, steps_from_records, steps_to_records
from tilewright.auto_scheduler.task import Task
from tilewright.auto_scheduler.untuned_note import untuned_note
from tilewright.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key
from tilewright.search.records import RecordFile
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.target.target import Target, TargetLike

AUTO_SCHEDULER_LOG_VERSION: Final = "v0.6"
FAILED_COST: Final = 1e10
"""The cost that TVM writes for a candidate that failed."""

Pair = tuple[MeasureInput, MeasureResult]
logger = logging.getLogger("auto_scheduler")


# -- one record ---------------------------------------------------------------------------------------------------


def state_to_record(state: State | StateObject) -> list[Any]:
    """A state as records have it: its steps tell the rest."""
    return [[], steps_to_records(state.transform_steps)]


def state_from_record(record: Any) -> StateObject:
    """The state of a record: its steps only. ``ComputeDAG.state_from_steps`` gives its stages."""
    if not isinstance(record, list) or len(record) != 2:
        raise ScheduleError(f"{record!r} is not the record of a state, which is a list of two items")
    steps = steps_from_records(record[1])
    concrete = all(None not in step.lengths for step in steps if isinstance(step, SplitStep))
    return StateObject((), steps, concrete=concrete)


def _result_to_record(result: MeasureResult) -> list[Any]:
    costs = [float(cost) for cost in result.costs] or [FAILED_COST]
    return [costs, int(result.error_no), result.all_cost, int(result.timestamp)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _result_from_record(record: Any) -> MeasureResult:
    if not isinstance(record, list) or len(record) != 4:
        raise ScheduleError(f"{record!r} is not the record of a result, which is a list of four items")
    costs, error, seconds, timestamp = record
    if not isinstance(costs, list) or not all(_is_number(cost) and cost >= 0 for cost in costs):
        raise ScheduleError(f"the costs {costs!r} are not a list of times")
    if error not in set(MeasureErrorNo) or isinstance(error, bool):
        raise ScheduleError(f"{error!r} is not the number of an error; those are 0 to {max(MeasureErrorNo)}")
    if not _is_number(seconds) or not _is_number(timestamp):
        raise ScheduleError(f"the time {seconds!r} or the date {timestamp!r} is not a number")
    if error == MeasureErrorNo.NO_ERROR and not costs:
        raise ScheduleError("a result without an error has no costs")
    return MeasureResult(costs, error, "", seconds, timestamp)


def _pair_from_record(record: Any) -> Pair:
    if not isinstance(record, dict) or not {"i", "r"} <= set(record):
        raise ScheduleError('a record is an object with "i" (what was measured) and "r" (what came of it)')
    version = record.get("v")
    if not isinstance(version, str) or not version.startswith("v0."):
        raise ScheduleError(f'the version "v" of the record is {version!r}, not one such as "v0.6"')
    given = record["i"]
    if not isinstance(given, list) or len(given) != 2:
        raise ScheduleError(f"{given!r} is not a list of a task and a state")
    task, state = Task.from_record(given[0]), state_from_record(given[1])
    return MeasureInput(task, state), _result_from_record(record["r"])


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """The line of a record."""
    given = [inp.task.to_record(), state_to_record(inp.state)]
    return json.dumps({"i": given, "r": _result_to_record(res), "v": AUTO_SCHEDULER_LOG_VERSION})


def load_record_from_string(record: str) -> Pair:
    """What a line records."""
    try:
        found = json.loads(record)
    except (json.JSONDecodeError, TypeError, RecursionError) as error:
        raise ScheduleError(f"the record is not JSON: {error}") from error
    return _pair_from_record(found)


def serialize_measure_input(inp: MeasureInput) -> str:
    """What was measured, as JSON text."""
    return json.dumps([inp.task.to_record(), state_to_record(inp.state)])


def deserialize_measure_input(text: str) -> MeasureInput:
    """What ``serialize_measure_input`` wrote."""
    try:
        task, state = json.loads(text)
    except (json.JSONDecodeError, TypeError, ValueError) as error:
        raise ScheduleError(f"the text is not that of a measured input: {error}") from error
    return MeasureInput(Task.from_record(task), state_from_record(state))


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """A measured input that was read, with the graph of its workload; with its stages and loops where asked."""
    dag: ComputeDAG = inp.task.compute_dag
    state: Any = inp.state
    if rebuild_state:
        state = dag.infer_bound_from_state(dag.state_from_steps(inp.state.transform_steps))
    return MeasureInput(inp.task, state)


# -- files --------------------------------------------------------------------------------------------------------


class RecordToFile(MeasureCallback):
    """Appends what is measured to a file. Each record is on the disk when the call returns."""

    each = True

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)
        Path(filename).absolute().parent.mkdir(parents=True, exist_ok=True)

    def callback(self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Write a batch."""
        save_records(self.filename, inputs, results)

    def untuned(self, policy: Any, seconds: float) -> None:
        """Write how fast the constructed schedule was, as a comment."""
        RecordFile(self.filename).append([untuned_note(policy.search_task, seconds)])


class RecordReader:
    """The records of a file. Lines that are none are skipped, and reported once with their numbers."""

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)

    def check_workload_key(self, inputs: Iterable[MeasureInput]) -> None:
        """Warn of workloads that this program does not know: their states cannot be replayed."""
        unknown = sorted({inp.task.workload_key for inp in inputs if not inp.task.is_known})
        if unknown:
            others = f", and {len(unknown) - 1} others" if len(unknown) > 1 else ""
            logger.warning(
                "%s: the workload %s%s is not registered in this program; import the module that registers it",
                self.filename,
                unknown[0],
                others,
            )

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """The inputs and results of the records after the first ``skip_lines``, ``max_lines`` of them at most."""
        pairs = list(self)
        end = None if max_lines is None or max_lines < 0 else skip_lines + max_lines
        chosen = pairs[skip_lines:end]
        return [inp for inp, _ in chosen], [res for _, res in chosen]

    def __iter__(self) -> Iterator[Pair]:
        loaded = RecordFile(self.filename).read(_pair_from_record)
        if loaded.problems:
            logger.warning("%s", loaded.summary(self.filename))
        return iter(loaded.records)


def load_records(filename: str | Path) -> Iterator[Pair]:
    """The records of a file."""
    return iter(RecordReader(filename))


def save_records(
    filename: str | Path, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
) -> None:
    """Append records to a file."""
    RecordFile(filename).append(
        dump_record_to_string(inp, res) for inp, res in zip(inputs, results, strict=True)
    )


def load_best_record(
    filename: str | Path,
    workload_key: str | None = None,
    target: TargetLike | None = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest record of a workload on a kind of target (of any, where none is given); None and None if there is
    none. With ``include_compatible``, records of smaller sizes whose schedules fit count too, scaled by their sizes."""
    kind = None if target is None else Target(target).kind.name
    wanted = None if workload_key is None else decode_workload_key(workload_key)
    best: tuple[MeasureInput | None, MeasureResult | None] = (None, None)
    lowest = math.inf
    for inp, res in load_records(filename):
        if res.error_no != MeasureErrorNo.NO_ERROR or (
            kind is not None and inp.task.target.kind.name != kind
        ):
            continue
        factor = 1.0
        if wanted is not None and inp.task.workload_key != workload_key:
            if not include_compatible:
                continue
            factor = calc_workload_dis_factor(wanted, decode_workload_key(inp.task.workload_key))
        cost = res.mean * factor
        if cost < lowest:
            lowest, best = cost, (inp, res)
    return best


def distill_record_file(in_file: str | Path, out_file: str | Path) -> int:
    """Write the best record of each workload and target of one file to another; returns how many there are."""
    best: dict[tuple[str, str], Pair] = {}
    for inp, res in load_records(in_file):
        key = (inp.task.workload_key, str(inp.task.target))
        if res.error_no == MeasureErrorNo.NO_ERROR and (key not in best or res.mean < best[key][1].mean):
            best[key] = (inp, res)
    if not best:
        raise ScheduleError(f"{in_file} has no record of a program that ran")
    path = Path(out_file)
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    save_records(path, [inp for inp, _ in best.values()], [res for _, res in best.values()])
    logger.info("Extract %d best records from %s to %s", len(best), in_file, out_file)
    return len(best)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tilewright.auto_scheduler.measure_record",
        description="Keep the best record of each workload.",
    )
    parser.add_argument("--mode", choices=["distill"], required=True)
    parser.add_argument("-i", "--input", required=True, help="file of records")
    parser.add_argument("-o", "--output", help="file to write; INPUT.best.json if not given")
    options = parser.parse_args(arguments)
    if not Path(options.input).is_file():
        parser.error(f"there is no file {options.input}")
    out = options.output or f"{options.input}.best.json"
    try:
        count = distill_record_file(options.input, out)
    except TilewrightError as error:
        parser.exit(1, f"{error.message}\n")
    parser.exit(0, f"{count} records in {out}\n")


if __name__ == "__main__":
    main()
