"""A log of calls says when, how long, and on which shapes."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.backend import vm
from tilewright.runtime.call_log import CallLog, LoggedTensor
from tilewright.runtime.vm import VirtualMachine


@pytest.fixture(scope="module")
def program():
    """Two kernels over vectors of any length."""
    x = relay.var("x", shape=(relay.Any(),), dtype="float32")
    total = relay.sum(relay.exp(x))
    return vm.compile(
        tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.sort(x), total]))), "llvm"
    )


def kernels(log):
    """The calls that are not of functions for shapes."""
    return [call for call in log.calls() if not call.name.startswith("shape_func")]


def test_every_call_is_logged_with_its_shapes(program):
    """Each run has the calls in order, within the time that it took, on the tensors that it was given."""
    log = CallLog()
    machine = VirtualMachine(program, tvm.cpu(0), log=log)
    for length in (3, 1000):
        log.clear()
        machine.invoke("main", np.ones(length, "float32"))
        calls = kernels(log)
        assert len(calls) == 2 and all("fused" in call.name for call in calls)
        assert all(LoggedTensor("float32", (length,)) in call.tensors for call in calls)
        begins = [call.begin_seconds for call in calls]
        assert begins == sorted(begins) and all(0 <= call.seconds < 1 for call in calls)
        assert begins[0] + calls[0].seconds <= begins[1]


def test_clearing_forgets_and_a_long_log_grows(program):
    """Nothing is left of what was before; thousands of calls fit."""
    log = CallLog()
    machine = VirtualMachine(program, tvm.cpu(0), log=log)
    log.clear()
    assert log.calls() == []
    machine.set_input("main", np.ones(4, "float32"))
    for _ in range(1000):
        machine.invoke("main")
    assert len(kernels(log)) == 2000


def test_the_log_may_go_before_the_machine(program):
    """What is watched keeps the log alive: nothing is written to freed memory."""
    machine = VirtualMachine(program, tvm.cpu(0), log=CallLog())
    for _ in range(10):
        ordered, total = machine.invoke("main", np.array([2, 1], "float32"))
    assert ordered.numpy().tolist() == [1, 2]


def test_errors_of_a_kernel_come_through():
    """A function that fails does so through the log, and is logged."""
    log = CallLog()

    def fail(*_):
        raise ValueError("no such luck")

    function = tvm.runtime.convert(fail)
    watched = tvm.runtime.PackedFunc.from_handle(log.watch(function, "fail"), "fail")
    with pytest.raises(ValueError, match="no such luck"):
        watched(1)
    assert [call.name for call in log.calls()] == ["fail"]


def test_bytes_and_text_of_a_tensor():
    """Elements times their size, and the form that messages use."""
    tensor = LoggedTensor("float16", (2, 3))
    assert tensor.size_bytes == 12 and tensor.text() == "float16[2, 3]"
