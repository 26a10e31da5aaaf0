"""time_evaluator: counts, units and errors."""

import subprocess
import sys
import time

import numpy as np
import pytest

from tilewright.runtime import (
    BenchmarkResult,
    Module,
    convert_to_tvm_func,
    cpu,
    cuda,
    register_func,
    remove_global_func,
)
from tilewright.runtime.benchmark import time_evaluator


def test_counts_of_calls() -> None:
    """One call to warm up, then number calls for each repeat; every repeat has a result."""
    calls: list[int] = []
    result = time_evaluator(convert_to_tvm_func(lambda x: calls.append(x)), number=3, repeat=4)(7)
    assert calls == [7] * (1 + 3 * 4)
    assert len(result.results) == 4
    assert 0 < result.min <= result.median <= result.max < 1


def test_shortest_repeat() -> None:
    """A repeat is made longer until it lasts as long as asked."""
    calls: list[int] = []
    result = time_evaluator(
        convert_to_tvm_func(lambda: calls.append(1)), number=1, repeat=1, min_repeat_ms=20
    )()
    assert result.results[0] * (len(calls) - 1) >= 0.02


def test_preparation() -> None:
    """The function named by f_preproc runs before each repeat, with the arguments."""
    seen: list[float] = []
    register_func("test.benchmark.prepare", lambda x: seen.append(x))
    try:
        time_evaluator(
            convert_to_tvm_func(lambda x: None), number=2, repeat=3, f_preproc="test.benchmark.prepare"
        )(1.5)
    finally:
        remove_global_func("test.benchmark.prepare")
    assert seen == [1.5] * 3


def test_of_a_module(kernels: Module) -> None:
    """A module measures its functions by name, and flushes caches on request."""
    a, b = np.zeros(1000, "float32"), np.zeros(1000, "float32")
    evaluator = kernels.time_evaluator("add_one", cpu(0), number=5, f_preproc="cache_flush_cpu_non_first_arg")
    assert 0 < evaluator(a, b).mean < 0.1
    assert b[0] == 1
    with pytest.raises(RuntimeError, match="no such device"):
        kernels.time_evaluator("add_one", cuda(99))
    with pytest.raises(AttributeError, match="no function 'absent'"):
        kernels.time_evaluator("absent", cpu(0))


def test_errors() -> None:
    """A function that fails ends the measurement with its error; counts below one are refused."""

    def fail() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        time_evaluator(convert_to_tvm_func(fail))()
    with pytest.raises(ValueError, match="at least 1"):
        time_evaluator(convert_to_tvm_func(fail), number=0)


def test_summary() -> None:
    """The summary statistics are those of the repeats, printed in a unit that fits."""
    result = BenchmarkResult([0.001, 0.002, 0.006])
    assert (result.median, result.min, result.max) == (0.002, 0.001, 0.006)
    assert result.mean == pytest.approx(0.003)
    assert result.std == pytest.approx(np.std([0.001, 0.002, 0.006]))
    assert "mean (ms)" in str(result) and "3.0000" in str(result)
    assert "median (ns)" in str(BenchmarkResult([1e-7]))
    assert "mean (us)" in str(BenchmarkResult([1e-5]))
    assert "mean (s)" in str(BenchmarkResult([2.0]))
    assert repr(result).startswith("BenchmarkResult(min=0.001, mean=0.00")


_INTERRUPTED = """
import os, signal, sys, threading, time

import tilewright as tvm
from tilewright import relay
x = relay.var("x", shape=(64, 64))
library = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
executor = library["default"](tvm.cpu())
# A process that a shell started in the background ignores it, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.time()
try:
    if sys.argv[1] == "evaluator":
        executor.time_evaluator("run", tvm.cpu(), number=2_000_000_000)()
    else:
        executor.run_timed(2_000_000)
except KeyboardInterrupt:
    print(time.time() - begin)
"""


@pytest.mark.parametrize("what", ["evaluator", "run_timed"])
def test_a_measurement_can_be_interrupted(what: str) -> None:
    """Ctrl-C ends it within about a second."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, what], capture_output=True, text=True, timeout=100, check=True
    )
    assert 0.4 < float(done.stdout) < 3


def test_pauses_between_repeats(kernels: Module) -> None:
    """After every two of five repeats the device rests: three times here. All repeats are in the result."""
    a, b = np.zeros(1000, "float32"), np.zeros(1000, "float32")
    evaluator = kernels.time_evaluator(
        "add_one", cpu(0), 2, 5, cooldown_interval_ms=20, repeats_to_cooldown=2, cache_flush_bytes=4096
    )
    begin = time.perf_counter()
    result = evaluator(a, b)
    assert time.perf_counter() - begin >= 0.06
    assert len(result.results) == 5
    assert result.max < 0.02
    with pytest.raises(ValueError, match="repeats_to_cooldown=0"):
        kernels.time_evaluator("add_one", cpu(0), cooldown_interval_ms=1, repeats_to_cooldown=0)(a, b)
