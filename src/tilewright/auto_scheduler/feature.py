"""The features of programs that cost models learn from, under TVM's names: one row of numbers for every store."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.auto_scheduler.features.of_state import Features, features_of_states
from tilewright.auto_scheduler.features.vector import DEFAULT_MAX_BUFFERS, feature_names
from tilewright.auto_scheduler.measure_record import RecordReader
from tilewright.auto_scheduler.measure_types import MeasureInput, MeasureResult

DEFAULT_MAX_N_BUFS = DEFAULT_MAX_BUFFERS

Throughputs = NDArray[np.float32]
TaskNumbers = NDArray[np.int32]


def get_per_store_feature_names(max_n_bufs: int | None = None) -> list[str]:
    """The name of each number of a row, for so many tensors in a statement."""
    return list(feature_names(max_n_bufs or DEFAULT_MAX_BUFFERS))


def get_per_store_features_from_states(
    states: Sequence[Any], task: Any, max_n_bufs: int | None = None
) -> list[Features]:
    """A row for each store of each state; no rows for a state that makes no program."""
    return features_of_states(task, states, max_n_bufs or DEFAULT_MAX_BUFFERS)


def get_per_store_features_from_measure_pairs(
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
    skip_first_n_feature_extraction: int = 0,
    max_n_bufs: int | None = None,
) -> tuple[list[Features], Throughputs, TaskNumbers]:
    """The features of what was measured, how fast it was as a part of the fastest of its task, and the number of its
    task. The first so many have no features."""
    buffers = max_n_bufs or DEFAULT_MAX_BUFFERS
    numbers: dict[str, int] = {}
    members: dict[str, list[int]] = {}
    for place, one in enumerate(inputs):
        key = f"{one.task.workload_key} {one.task.target}"
        numbers.setdefault(key, len(numbers))
        members.setdefault(key, []).append(place)
    found: list[Features] = [np.zeros((0, len(feature_names(buffers))), np.float32) for _ in inputs]
    throughputs = np.zeros(len(inputs), np.float32)
    tasks = np.zeros(len(inputs), np.int32)
    for key, places in members.items():
        wanted = [place for place in places if place >= skip_first_n_feature_extraction]
        task = inputs[places[0]].task
        rows = features_of_states(task, [inputs[place].state for place in wanted], buffers)
        for place, row in zip(wanted, rows, strict=True):
            found[place] = row
        best = min(results[place].mean for place in places)
        for place in places:
            tasks[place] = numbers[key]
            throughputs[place] = best / results[place].mean if np.isfinite(results[place].mean) else 0.0
    return found, throughputs, tasks


def get_per_store_features_from_file(
    filename: str, max_lines: int, max_n_bufs: int | None = None
) -> tuple[list[Features], Throughputs, TaskNumbers]:
    """The features of the records of a file."""
    inputs, results = RecordReader(filename).read_lines(max_lines)
    return get_per_store_features_from_measure_pairs(inputs, results, 0, max_n_bufs)


def unpack_feature(byte_arr: bytes | bytearray) -> tuple[list[Features], Throughputs, TaskNumbers]:
    """Read TVM's packed form: the number of programs, sizes, then each program's rows, throughputs and task numbers.

    The size of a program counts the number of its rows, which stands before them, and all their values; it is zero for
    one without rows. The last two sizes are those of the throughputs and of the task numbers.
    """
    data = bytes(byte_arr)
    (count,) = struct.unpack_from("i", data)
    sizes = struct.unpack_from(f"{count + 2}i", data, 4)
    offset = 4 * (count + 3)
    found: list[Features] = []
    for size in sizes[:count]:
        values = np.frombuffer(data, np.float32, size, offset)
        offset += 4 * size
        rows = int(values[0]) if size else 0
        found.append(values[1:].reshape(rows, -1) if rows else np.zeros((0, 0), np.float32))
    throughputs = np.frombuffer(data, np.float32, sizes[count], offset)
    tasks = np.frombuffer(data, np.int32, sizes[count + 1], offset + 4 * sizes[count])
    return found, throughputs, tasks
