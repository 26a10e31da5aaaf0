"""What happens in the process that runs candidates. Nothing here is trusted to end, or to leave memory as it was."""

from __future__ import annotations

import json
import math
import struct
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compile.unit import Unit, link
from tilewright.runtime.benchmark import time_evaluator
from tilewright.runtime.device import Device, device
from tilewright.runtime.ndarray import NDArray, array, empty, numpy_dtype
from tilewright.runtime.packed_func import PackedFunc
from tilewright.search.limits import default_memory, end_with_parent, limit_memory
from tilewright.search.options import RunOptions
from tilewright.search.outcomes import ErrorKind
from tilewright.support.dtype import DataType

_HEAD = struct.Struct("<I")
_FLUSH = "cache_flush_cpu_non_first_arg"
_is_limited = False


def request(options: RunOptions, arguments: str, unit: bytes, incumbent: bytes) -> bytes:
    """What ``measure`` takes: the options, the folder with the arguments, the code of a candidate and, where there is
    one, the code of the incumbent."""
    head = json.dumps([options.__dict__, arguments, len(unit)]).encode()
    return _HEAD.pack(len(head)) + head + unit + incumbent


def start(payload: bytes) -> bytes:
    """A job that does nothing: the process is there when it is done."""
    return payload


def measure(payload: bytes) -> bytes:
    """Measure a candidate; answers with JSON: costs and the incumbent's, or a kind of error and a message."""
    (size,) = _HEAD.unpack_from(payload)
    settings, folder, length = json.loads(payload[_HEAD.size : _HEAD.size + size])
    options = RunOptions(**settings)
    blocks = payload[_HEAD.size + size :]
    _limit(options)
    try:
        candidate = _load(blocks[:length], options.function)
        incumbent = _load_incumbent(blocks[length:], options.function) if blocks[length:] else None
        where = device(options.device, options.device_id)
        arguments = load_arguments(folder, where)
        answer = _measure(candidate, incumbent, arguments, where, options, folder)
    except Exception as problem:  # noqa: BLE001 - whatever a candidate raises is its own failure
        answer = {"kind": ErrorKind.RUNTIME_DEVICE, "message": f"{type(problem).__name__}: {problem}"}
    return json.dumps(answer).encode()


def _limit(options: RunOptions) -> None:
    """Limit this process, once. Drivers of devices reserve addresses without end, so only the host's are limited."""
    global _is_limited
    if _is_limited:
        return
    _is_limited = True
    end_with_parent()
    if options.device == "cpu":
        limit_memory(default_memory() if options.memory is None else options.memory)


def _load(block: bytes, name: str) -> PackedFunc:
    unit = Unit.from_bytes(block)
    module = link([unit], unit.host.target)
    return module.get_function(name) if name else module.entry_func


@lru_cache(maxsize=4)
def _load_incumbent(block: bytes, name: str) -> PackedFunc:
    return _load(block, name)


@lru_cache(maxsize=1)
def load_arguments(folder: str, where: Device) -> list[NDArray]:
    """The arguments of a batch, made once."""
    described = json.loads((Path(folder) / "arguments.json").read_text())
    made = []
    for number, (shape, dtype, has_values) in enumerate(described):
        if has_values:
            path = Path(folder) / f"{number}.npy"
            made.append(array(np.load(path, allow_pickle=False).view(numpy_dtype(DataType(dtype))), where))
        else:
            made.append(random_array(shape, dtype, where, number))
    return made


def random_array(shape: list[int], dtype: str, where: Device, seed: int) -> NDArray:
    """Values that most kernels take: around zero for floats, a few small ones for 8- and 16-bit integers, and zeros for
    wider integers, which may be indices."""
    made = empty(shape, dtype, where)
    kind = DataType(dtype)
    generator = np.random.default_rng(seed)
    values: Any
    if kind.is_float or str(kind).startswith("bfloat"):
        values = generator.standard_normal(shape, dtype=np.float32)
    elif kind.bits <= 8:
        values = generator.integers(0, 2 if kind.bits == 1 else 8, shape)
    else:
        values = np.zeros(shape)
    try:
        made.copyfrom(np.asarray(values).astype(numpy_dtype(kind)))
    except (TypeError, ValueError):  # NumPy has no such type: the memory stays as it is
        return made
    return made


def _measure(
    candidate: PackedFunc,
    incumbent: PackedFunc | None,
    arguments: list[NDArray],
    where: Device,
    options: RunOptions,
    folder: str,
) -> dict[str, Any]:
    first = _seconds(candidate, arguments, where, 1)
    if incumbent is not None and options.outputs:
        wrong = _difference(
            arguments[-options.outputs :], _expected(incumbent, arguments, where, options, folder)
        )
        if wrong:
            return {"kind": ErrorKind.WRONG_ANSWER, "message": wrong}
    if first > options.give_up_above:
        return {"costs": [first], "incumbent": []}
    number = (
        1
        if options.flush
        else max(options.number, math.ceil(options.min_repeat_ms * 1e-3 / max(first, 1e-9)))
    )
    before = _FLUSH if options.flush else ""
    costs, others = [], []
    # Alternating: what slows the machine down for a while slows both.
    for _ in range(options.repeat):
        if incumbent is not None:
            others.append(_seconds(incumbent, arguments, where, number, before))
        costs.append(_seconds(candidate, arguments, where, number, before))
    if options.cooldown > 0:
        time.sleep(options.cooldown)
    return {"costs": costs, "incumbent": others}


def _seconds(
    function: PackedFunc, arguments: list[NDArray], where: Device, number: int, before: str = ""
) -> float:
    """The mean of so many calls, after one that is not counted."""
    return time_evaluator(function, number, 1, 0, before, where)(*arguments).mean


_answers: dict[str, list[np.ndarray[Any, Any]]] = {}


def _expected(
    incumbent: PackedFunc, arguments: list[NDArray], where: Device, options: RunOptions, folder: str
) -> list[np.ndarray[Any, Any]]:
    """What the incumbent computes, once a batch; the candidate's results are put back afterwards."""
    if folder not in _answers:
        outputs = arguments[-options.outputs :]
        found = [output.numpy() for output in outputs]
        incumbent(*arguments)
        where.sync()
        _answers.clear()
        _answers[folder] = [output.numpy() for output in outputs]
        for output, values in zip(outputs, found, strict=True):
            output.copyfrom(values)
    return _answers[folder]


def _difference(found: list[NDArray], expected: list[np.ndarray[Any, Any]]) -> str:
    """How results differ by more than rounding; empty where they do not."""
    for place, (output, right) in enumerate(zip(found, expected, strict=True)):
        values = output.numpy()
        if values.dtype.kind not in "fV":
            if not np.array_equal(values, right):
                return f"result {place} differs from the incumbent's"
            continue
        left_values, right_values = values.astype(np.float64), right.astype(np.float64)
        finite = np.isfinite(right_values)
        if not np.array_equal(np.isfinite(left_values), finite):
            return f"result {place} has other infinities or NaNs than the incumbent's"
        if not finite.any():
            continue
        largest = float(np.max(np.abs(right_values[finite])))
        error = float(np.max(np.abs(left_values[finite] - right_values[finite])))
        allowed = {2: 2e-2, 4: 1e-3, 8: 1e-6}.get(values.dtype.itemsize, 1e-1) * largest
        if error > allowed:
            return (
                f"result {place} differs from the incumbent's by {error:.3g}, where {allowed:.3g} is rounding"
            )
    return ""
