"""Records of measurements: TVM's JSON lines of version 0.2, one for each configuration measured.

    {"input": [target, task, arguments, {}], "config": {"index": 3, "code_hash": null, "entity": [...]},
     "result": [[seconds, ...], error, seconds of all, timestamp], "version": 0.2, "tvm_version": "0.8.0"}

Lines that are not records are skipped, with one warning that says how many and why.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tilewright.autotvm.measure.measure import MeasureInput, MeasureResult
from tilewright.autotvm.task.space import ConfigEntity
from tilewright.autotvm.task.task import Task
from tilewright.search.outcomes import typical
from tilewright.search.records import RecordFile
from tilewright.support.errors import TilewrightError
from tilewright.target.target import Target

AUTOTVM_LOG_VERSION = 0.2
TVM_VERSION = "0.8.0"
"""The version of TVM whose format this is."""

logger = logging.getLogger("autotvm")

Record = tuple[MeasureInput, MeasureResult]


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that tells inputs apart."""
    config = str(inp.config) if include_config else ""
    return "".join([str(inp.target), inp.task.name, str(inp.task.args), str({}), config])


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """One line for a measurement. The protocol ``pickle`` is the same text in base64: nothing is ever unpickled."""
    costs = list(result.costs) if result.error_no == 0 else [1e9]
    value = {
        "input": [str(inp.target), inp.task.name, inp.task.args, {}],
        "config": inp.config.to_json_dict(),
        "result": [costs, int(result.error_no), result.all_cost, result.timestamp],
        "version": AUTOTVM_LOG_VERSION,
        "tvm_version": TVM_VERSION,
    }
    text = json.dumps(value)
    if protocol == "json":
        return text
    if protocol == "pickle":
        return base64.b64encode(text.encode()).decode()
    raise RuntimeError(f"unknown protocol {protocol!r} of records: it is json or pickle")


def decode(row: str, protocol: str = "json") -> Record | None:
    """The measurement of a line; None for records of versions before 0.2, which kept no knobs."""
    if protocol == "pickle":
        try:
            row = base64.b64decode(row, validate=True).decode()
        except ValueError:
            raise RuntimeError("not a record of this version: pickled records are not read") from None
    elif protocol != "json":
        raise RuntimeError(f"unknown protocol {protocol!r} of records: it is json or pickle")
    return decode_value(json.loads(row))


def decode_value(value: Any) -> Record | None:
    """The measurement of a line's JSON value."""
    if not isinstance(value, dict):
        raise TilewrightError("a record is a JSON object")
    if "v" in value or "i" in value:
        return None
    version = value.get("version")
    if version != AUTOTVM_LOG_VERSION:
        raise TilewrightError(f"version {version!r} of the format, not {AUTOTVM_LOG_VERSION}")
    for name in ("input", "config", "result"):
        if name not in value:
            raise TilewrightError(f"the record has no {name!r}")
    target, name, arguments, _ = value["input"]
    if not isinstance(name, str) or not isinstance(arguments, list):
        raise TilewrightError("the record's input is not [target, task, arguments, {}]")
    costs, error, all_cost, timestamp = value["result"]
    if not isinstance(costs, list) or not costs or not all(_is_number(cost) for cost in costs):
        raise TilewrightError("the record's costs are not a list of numbers")
    if not isinstance(error, int) or not _is_number(all_cost) or not _is_number(timestamp):
        raise TilewrightError("the record's result is not [costs, error, seconds, timestamp]")
    config = ConfigEntity.from_json_dict(value["config"])
    config.cost = typical(costs)
    inp = MeasureInput(Target(str(target)), Task(name, as_tuples(arguments)), config)
    return inp, MeasureResult(tuple(costs), error, all_cost, timestamp)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def as_tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that workloads have."""
    return tuple(as_tuples(part) for part in value) if isinstance(value, (list, tuple)) else value


def load_from_file(filename: str | Path | IO[str]) -> Iterator[Record]:
    """The records of a file, or of an open file."""
    if isinstance(filename, (str, Path)):
        path = Path(filename)
        if not path.exists():
            raise FileNotFoundError(f"there is no file of tuning records at {path}")
        lines = [line.text for line in RecordFile(path).lines()]
        numbers = [line.number for line in RecordFile(path).lines()]
        shown: str = str(path)
    else:
        lines = [line.strip() for line in filename]
        numbers = list(range(1, len(lines) + 1))
        shown = str(getattr(filename, "name", "the records"))
    problems: list[str] = []
    for number, text in zip(numbers, lines, strict=True):
        if not text or text.startswith("#"):
            continue
        record = _decoded_or_problem(text)
        if isinstance(record, str):
            problems.append(f"line {number}: {record}")
        elif record is not None:
            yield record
    if problems:
        logger.warning("%s: %d lines are not records and are skipped (%s)", shown, len(problems), problems[0])


def _decoded_or_problem(text: str) -> Record | str | None:
    try:
        return decode(text)
    except json.JSONDecodeError:
        return "not JSON"
    except (TilewrightError, ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
        return str(problem) or type(problem).__name__
