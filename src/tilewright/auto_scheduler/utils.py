"""Small helpers around the keys of workloads and the shapes of tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.contrib.popen_pool import PopenWorker
from tilewright.ir.expr import IntImm
from tilewright.support.errors import ScheduleError


def decode_workload_key(workload_key: str) -> tuple[str, tuple[Any, ...] | None]:
    """The name or hash of a workload's key, and its arguments, lists made flat. Any other text is a name
    without arguments."""
    try:
        found = json.loads(workload_key)
    except (json.JSONDecodeError, TypeError):
        return workload_key, None
    if not isinstance(found, list) or not found:
        return workload_key, None
    return str(found[0]), tuple(_flat(found[1:]))


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def calc_workload_dis_factor(
    target_workload_pair: tuple[str, tuple[Any, ...] | None],
    workload_pair: tuple[str, tuple[Any, ...] | None],
) -> float:
    """How many times larger the target is than another workload of the same function or graph: the product of the
    ratios of their sizes. Infinite if the other's schedule does not fit it: a size is not a multiple, or something else
    differs."""
    (name, target), (other_name, other) = target_workload_pair, workload_pair
    if name != other_name or (target is None) != (other is None) or len(target or ()) != len(other or ()):
        return math.inf
    factor = 1.0
    for wanted, given in zip(target or (), other or (), strict=True):
        sizes = isinstance(wanted, int) and isinstance(given, int) and wanted and given
        if not sizes or isinstance(wanted, bool):
            if wanted != given:
                return math.inf
        elif wanted % given:
            return math.inf
        else:
            factor *= wanted / given
    return factor


def get_const_int(expr: Any) -> int:
    """The value of a constant."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, int):
        return expr
    raise ScheduleError(f"{expr} is not a constant")


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """A shape as plain integers; what is not a constant stays as it is."""
    return tuple(one.value if isinstance(one, IntImm) else one for one in in_tuple)


def get_func_name(func: Callable[..., Any]) -> str:
    """The name of a function."""
    return func.__name__


def call_func_with_timeout(
    worker: PopenWorker,
    timeout: float | None,
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """What a function returns in a worker process, or the exception that ended it: also where it took too long."""
    worker.send(func, args, kwargs, timeout)
    try:
        return worker.recv()
    except Exception as error:  # noqa: BLE001 - whatever the function raised is the answer
        return error
