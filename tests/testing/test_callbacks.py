"""Helpers for tests of calls between languages."""

import signal
import time

import numpy as np
import pytest

import tilewright as tvm
import tilewright.testing


def test_values_come_back() -> None:
    """Numbers, text, nothing and tensors pass through a call unchanged."""
    assert [tvm.testing.echo(value) for value in (3, 2.5, "text", None)] == [3, 2.5, "text", None]
    tensor = tvm.nd.array(np.arange(3))
    assert (tvm.testing.echo(tensor).numpy() == [0, 1, 2]).all()
    assert tvm.testing.nop(1, 2) is None


def test_references_are_counted() -> None:
    """A function that was given an array holds another reference to it during the call."""
    array = tvm.nd.array(np.arange(3))
    assert tvm.testing.object_use_count(array) == 1
    inside = tvm.runtime.convert(lambda given: (given.is_view, tvm.testing.object_use_count(given) == 2)[1])
    assert inside(array)
    assert tvm.testing.object_use_count(array) == 1
    assert tvm.testing.object_use_count(inside) == 1
    with pytest.raises(TypeError, match="not counted"):
        tvm.testing.object_use_count(tvm.tir.Var("x", "int32"))  # type: ignore[arg-type]


def test_errors_pass_through_calls() -> None:
    """An error that a packed function raises reaches whoever called the function around it."""
    with pytest.raises(tvm.TVMError, match="too hot"):
        tvm.testing.test_wrap_callback(tvm.testing.test_raise_error_callback("too hot"))()
    check = tvm.testing.test_check_eq_callback("unlike")
    assert check(2, 2) is None
    with pytest.raises(tvm.TVMError, match="unlike: 2 is not 3"):
        check(2, 3)


@pytest.mark.parametrize("kind", ["OpNotImplemented", "OpAttributeInvalid", "InternalError"])
def test_kinds_of_errors_by_name(kind: str) -> None:
    """The name before the colon is the class of the error; built-in ones are instances of the root too."""
    with pytest.raises(getattr(tvm.error, kind), match="myop"):
        tvm.testing.test_raise_error_callback(f"{kind}: myop")()
    with pytest.raises(ValueError, match="myop") as caught:
        tvm.testing.test_raise_error_callback("ValueError: myop")()
    assert isinstance(caught.value, tvm.TVMError)


def test_devices_come_back() -> None:
    """A device passes through a call with its type and number, which are compared with those expected."""
    device = tvm.opencl(10)
    assert tvm.testing.device_test(device, device.device_type, 10) == device
    with pytest.raises(ValueError, match="is not the device 9"):
        tvm.testing.device_test(device, device.device_type, 9)


def test_waiting_ends_with_a_signal() -> None:
    """The exception of a signal's handler ends the wait, long before its time."""

    def stop(number: int, frame: object) -> None:
        raise InterruptedError("enough")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    begin = time.monotonic()
    try:
        with pytest.raises(InterruptedError):
            tvm.testing.run_check_signal(60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 30
    tvm.testing.run_check_signal(0)
