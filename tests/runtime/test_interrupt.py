"""Runs that take long answer to Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tvm
from tilewright import relay, te, tir
from tilewright.contrib import graph_executor
from tilewright.relay.frontend.onnx import backend
from tilewright.runtime import config_threadpool

ENDLESS = """<ir_version: 8, opset_import: ["" : 17]>
agraph (int64 n, float[2] x) => (float[2] y) {
    go = Constant<value = bool {1}>()
    y = Loop(n, go, x) <
        body = turn (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            d = Identity(c)
            w = Cos(v)
        }
    >
}
"""


@pytest.fixture
def interrupted_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A signal arrives when the test's timer says so, as if somebody had pressed Ctrl-C."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("executor", ["vm", "debug"])
def test_a_loop_that_never_ends(executor: str, interrupted_soon: None) -> None:
    """2^63 - 1 turns, on the virtual machine and in the reference."""
    prepared = backend.prepare(onnx.parser.parse_model(ENDLESS), executor=executor)
    inputs = [np.int64(3), np.float32([1, 2])]
    prepared.run(inputs)
    # Again and again: an interrupt inside a callback of the garbage collector is lost, as Python has it.
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        prepared.run([np.int64(2**63 - 1), inputs[1]])
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert time.perf_counter() - started < 10
    # It runs again as if nothing had happened.
    np.testing.assert_allclose(prepared.run(inputs)[0], np.cos(np.cos(np.cos(inputs[1]))), rtol=1e-5)


def test_a_graph_of_many_kernels(interrupted_soon: None) -> None:
    """It stops between two of them, and can be run again."""
    x = relay.var("x", shape=(384, 384))
    body: Any = x
    for _ in range(600):
        body = relay.nn.dense(body, x)
    with tvm.transform.PassContext(opt_level=0):
        library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    model = graph_executor.GraphModule(library["default"](tvm.cpu()))
    model.set_input("x", np.zeros((384, 384), "float32"))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
    with pytest.raises(KeyboardInterrupt):
        model.run()
    signal.setitimer(signal.ITIMER_REAL, 0)
    model.module.run_until(5)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_kernel(threads: int, interrupted_soon: None) -> None:
    """It stops between two tasks of its parallel loop, on one thread and on several, and can be called again."""
    rows, chain = 256, te.placeholder((256, 1), name="x")
    k = te.reduce_axis((0, 2_000_000), name="k")
    # A chain of divisions, each waiting for the one before: several milliseconds a row.
    chained = te.comm_reducer(lambda a, b: b / (a + 1), lambda dtype: tir.const(1, dtype), name="chained")
    y = te.compute((rows,), lambda i: chained(chain[i, 0] + k.var.astype("float32") * 0, axis=k), name="y")
    schedule = te.create_schedule(y.op)
    schedule[y].parallel(y.op.axis[0])
    function = tvm.build(schedule, [chain, y], "llvm")
    given, result = tvm.nd.array(np.ones((rows, 1), "float32")), tvm.nd.array(np.zeros(rows, "float32"))
    config_threadpool(0, threads)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        with pytest.raises(KeyboardInterrupt):
            function(given, result)
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        config_threadpool(0, 0)
    written = np.count_nonzero(result.numpy())
    assert 0 < written < rows
