"""Functions for tests of worker processes: what they set up, count and wait for."""

from __future__ import annotations

import time
from typing import Any

from tilewright.runtime.registry import get_global_func, register_func
from tilewright.testing.callbacks import echo

_STATE: list[Any] = [0, 0, 0]


def initializer(first: Any, second: Any, third: Any) -> None:
    """Notes its arguments in this process."""
    _STATE[:] = [first, second, third]


def after_initializer() -> tuple[Any, ...]:
    """What ``initializer`` noted in this process."""
    return tuple(_STATE)


def register_ffi() -> None:
    """Registers the global function ``testing.identity_py`` in this process."""
    register_func("testing.identity_py", lambda value: value, override=True)


def call_py_ffi(arg: Any) -> Any:
    """The argument, through the function that ``register_ffi`` registered."""
    return get_global_func("testing.identity_py")(arg)


def call_cpp_ffi(arg: Any) -> Any:
    """The argument, through the runtime."""
    return echo(arg)


def call_cpp_py_ffi(arg: Any) -> Any:
    """The argument, through the runtime and the function that ``register_ffi`` registered."""
    return echo(get_global_func("testing.identity_py"))(arg)


def fast_summation(n: int) -> int:
    """The sum of the numbers below n, by the formula."""
    return n * (n - 1) // 2


def slow_summation(n: int) -> int:
    """The sum of the numbers below n, one by one."""
    total = 0
    for number in range(n):
        total += number
    return total


def timeout_job(n: float) -> None:
    """Takes longer than so many seconds."""
    time.sleep(n * 1.5)
