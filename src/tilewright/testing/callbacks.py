"""Functions for tests of calls between languages: they return or raise what they are given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.registry import register_func
from tilewright.support.errors import TilewrightError


def nop(*args: Any) -> None:
    """Takes anything, gives nothing."""


def echo(value: Any) -> Any:
    """Gives what it was given, after a call through the runtime."""
    return convert_to_tvm_func(lambda given: given)(value)


def device_test(dev: Device, tid: int, did: int) -> Device:
    """Gives the device that it was given, after a call through the runtime, which compares its type and number."""

    def check(given: Device, kind: int, number: int) -> Device:
        if (given.device_type, given.device_id) != (kind, number):
            raise failure("ValueError", f"{given} is not the device {number} of type {kind}")
        return given

    found: Device = convert_to_tvm_func(check)(dev, tid, did)
    return found


def run_check_signal(nsec: int) -> None:
    """Waits so many seconds, and ends at once with the exception of a signal's handler."""
    until = time.monotonic() + nsec
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))


register_func("testing.nop", nop, override=True)
register_func("testing.echo", lambda value: value, override=True)


def test_wrap_callback(callback: Callable[[], Any]) -> PackedFunc:
    """A packed function that calls another one."""
    return convert_to_tvm_func(lambda: callback())


def test_raise_error_callback(message: str) -> PackedFunc:
    """A packed function that fails with a message; ``"ValueError: ..."`` names the kind of error."""

    def fail() -> None:
        kind, _, rest = message.partition(": ")
        raise failure(kind, rest) if kind.isidentifier() and rest else TilewrightError(message)

    return convert_to_tvm_func(fail)


def test_check_eq_callback(message: str) -> PackedFunc:
    """A packed function that fails with a message unless its two arguments are equal."""

    def compare(left: Any, right: Any) -> None:
        if left != right:
            raise TilewrightError(f"{message}: {left} is not {right}")

    return convert_to_tvm_func(compare)


# The names say "test" because TVM's do; pytest must not collect them where they are imported.
for _function in (test_wrap_callback, test_raise_error_callback, test_check_eq_callback):
    setattr(_function, "__test__", False)  # noqa: B010
