"""The features of states, computed in forks of this process where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.auto_scheduler.features.extract import extract_features
from tilewright.auto_scheduler.features.gpu_limits import fits_blocks
from tilewright.auto_scheduler.features.vector import DEFAULT_MAX_BUFFERS, feature_matrix, feature_names
from tilewright.compile.workers import Done, WorkerPool, can_fork
from tilewright.support.errors import TilewrightError
from tilewright.support.options import compile_processes
from tilewright.te.schedule import infer_bound, schedule_ops
from tilewright.tir.stmt import Stmt

Features = NDArray[np.float32]

_WORTH_A_FORK = 32
_CHUNK = 16
_SECONDS = 60.0


def loops_of_state(task: Any, state: Any) -> Stmt:
    """The loops of a state before any pass: what features are read from. Inputs keep their layout, as in TVM."""
    schedule, _ = task.compute_dag.apply_steps_from_state(state)
    normalized = schedule.normalize()
    return schedule_ops(normalized, infer_bound(normalized))


def features_of_state(task: Any, state: Any, max_buffers: int = DEFAULT_MAX_BUFFERS) -> Features:
    """A row for each statement of a state; no row for a state that makes no program."""
    nothing = np.zeros((0, len(feature_names(max_buffers))), np.float32)
    try:
        loops = loops_of_state(task, state)
    except TilewrightError:
        return nothing
    if task.hardware_params.max_threads_per_block > 0 and not fits_blocks(loops, task.hardware_params):
        return nothing
    return feature_matrix(extract_features(loops, task.hardware_params.cache_line_bytes), max_buffers)


class _Batch:
    """What the forks find in their memory."""

    task: Any = None
    states: Sequence[Any] = ()
    max_buffers = DEFAULT_MAX_BUFFERS


def features_of_states(
    task: Any, states: Sequence[Any], max_buffers: int = DEFAULT_MAX_BUFFERS
) -> list[Features]:
    """The features of each state."""
    processes = min(compile_processes(), -(-len(states) // _CHUNK))
    if len(states) < _WORTH_A_FORK or processes < 2 or not can_fork():
        return [features_of_state(task, state, max_buffers) for state in states]
    _Batch.task, _Batch.states, _Batch.max_buffers = task, states, max_buffers
    starts = list(range(0, len(states), _CHUNK))
    pool = WorkerPool(processes)
    try:
        outcomes = pool.run(extract_chunk, [str(start).encode() for start in starts], _SECONDS)
    finally:
        pool.close()
        _Batch.task, _Batch.states = None, ()
    found: list[Features] = []
    for start, outcome in zip(starts, outcomes, strict=True):
        if isinstance(outcome, Done):
            found += unpack_rows(outcome.result, len(feature_names(max_buffers)))
        else:
            # A candidate that crashes or hangs the lowering takes the few of its chunk with it.
            nothing = np.zeros((0, len(feature_names(max_buffers))), np.float32)
            found += [nothing for _ in states[start : start + _CHUNK]]
    return found


def extract_chunk(payload: bytes) -> bytes:
    """What a fork does: the features of some states of the batch that it inherited."""
    start = int(payload)
    chunk = _Batch.states[start : start + _CHUNK]
    return pack_rows([features_of_state(_Batch.task, state, _Batch.max_buffers) for state in chunk])


def pack_rows(matrices: Sequence[Features]) -> bytes:
    """Matrices with equally many columns as bytes: their number, the number of rows of each, all rows."""
    head = np.array([len(matrices), *(len(one) for one in matrices)], np.int32).tobytes()
    return head + b"".join(np.ascontiguousarray(one, np.float32).tobytes() for one in matrices)


def unpack_rows(data: bytes, columns: int) -> list[Features]:
    """The matrices that ``pack_rows`` packed."""
    count = int(np.frombuffer(data, np.int32, 1)[0])
    rows = np.frombuffer(data, np.int32, count, 4)
    values = np.frombuffer(data, np.float32, -1, 4 * (count + 1)).reshape(-1, columns)
    ends = np.cumsum(rows)
    return [values[end - size : end] for end, size in zip(ends, rows, strict=True)]
