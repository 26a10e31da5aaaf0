"""Builders, runners and loaders of AutoTVM's: on this machine, and on a device of a tracker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rpc.boards import tracker_with_a_board

import tilewright as tvm
from tilewright import autotvm, rpc, te
from tilewright.autotvm.measure import Builder, MeasureErrorNo, MeasureInput, MeasureResult, Runner
from tilewright.autotvm.measure.local_builder import BuildResult
from tilewright.autotvm.measure.measure_methods import (
    DefaultModuleLoader,
    RPCRunner,
    default_module_loader,
    run_through_rpc,
)
from tilewright.contrib import tar

SIZE = 32


@autotvm.template("tests/measured")
def doubled(size: int) -> Any:
    """Twice a vector, whose knob is the length of its pieces."""
    a = te.placeholder((size,), name="a")
    b = te.compute((size,), lambda i: a[i] * 2.0, name="b")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", s[b].op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, b, s[b].op.axis[0])
    return s, [a, b]


@pytest.fixture(scope="module")
def candidate() -> tuple[MeasureInput, Any, Any]:
    """An input, its program as a file of objects, and the builder that holds the file."""
    task = autotvm.task.create("tests/measured", args=(SIZE,), target="llvm")
    measured = MeasureInput(task.target, task, task.config_space.get(0))
    builder = autotvm.LocalBuilder(build_func=tar.tar)
    builder.set_task(task, {})
    (built,) = builder.build([measured])
    assert isinstance(built, BuildResult) and built.error is None
    return measured, built, builder


@pytest.fixture(scope="module")
def tracker() -> Iterator[rpc.Tracker]:
    """A tracker with one device."""
    with tracker_with_a_board() as made:
        yield made


def test_builders_and_runners_of_ones_own() -> None:
    """They say how they build and run; what they do not say is an error that names the class."""

    class Builds(Builder):
        def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
            return super().build(measure_inputs)  # type: ignore[safe-super]

    class Runs(Runner):
        def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]) -> list[Any]:
            return super().run(measure_inputs, build_results)  # type: ignore[safe-super]

    with pytest.raises(NotImplementedError, match="Builds does not say how it builds"):
        Builds().build([])
    with pytest.raises(NotImplementedError, match="Runs does not say how it runs programs"):
        Runs().run([], [])
    with pytest.raises(TypeError, match="abstract"):
        Builder()  # type: ignore[abstract]


def test_a_program_is_loaded_on_this_machine(candidate: Any) -> None:
    """The default loader gives this machine and the program; what is called before may prepare the machine."""
    _, built, _ = candidate
    prepared: list[Any] = []
    loader = default_module_loader(lambda machine, result: prepared.append((machine, result)))
    assert isinstance(loader, DefaultModuleLoader)
    with loader({}, built) as (machine, module):
        assert prepared == [(machine, built)]
        device = machine.device("llvm", 0)
        data = np.arange(SIZE, dtype="float32")
        out = tvm.nd.empty((SIZE,), device=device)
        module(tvm.nd.array(data, device), out)
        np.testing.assert_array_equal(out.numpy(), 2 * data)
    with DefaultModuleLoader()({}, built) as (_, again):
        assert again.implements_function(module.entry_name)
    assert len(prepared) == 1


def test_a_program_is_loaded_on_a_device(candidate: Any, tracker: rpc.Tracker) -> None:
    """Of a tracker: the file is sent, and the session ends with the block."""
    _, built, _ = candidate
    prepared: list[Any] = []
    remote = {"device_key": "board", "host": "127.0.0.1", "port": tracker.port}
    with default_module_loader(lambda session, _: prepared.append(session))(remote, built) as (
        session,
        module,
    ):
        assert prepared == [session]
        assert session.listdir() == [Path(built.filename).name]
        assert module.implements_function(module.entry_name)
    with pytest.raises(tvm.error.RPCError, match="closed|ended"):
        session.listdir()


@pytest.mark.parametrize("flush", [False, True])
def test_measuring_on_a_device(candidate: Any, tracker: rpc.Tracker, flush: bool) -> None:
    """Each cost is that of one repeat; with nothing about a device it is this machine."""
    measured, built, _ = candidate
    remote = {"device_key": "board", "host": "127.0.0.1", "port": tracker.port}
    for where in (remote, {}):
        result = run_through_rpc(measured, built, 2, 3, 0, 0.0, where, None, flush)
        assert result.error_no == MeasureErrorNo.NO_ERROR, result
        assert len(result.costs) == 3 and min(result.costs) > 0
    failed = MeasureResult((ValueError("no program"),), MeasureErrorNo.COMPILE_HOST, 0.0, 0.0)
    assert run_through_rpc(measured, failed, 2, 3, 0, 0.0, remote, None) is failed


def test_a_loader_of_ones_own(candidate: Any, tracker: rpc.Tracker) -> None:
    """Gets the description of the device and the result of the build; what goes wrong in it is the candidate's
    result."""
    measured, built, _ = candidate
    remote = {"device_key": "board", "host": "127.0.0.1", "port": tracker.port}
    asked: list[Any] = []
    default = DefaultModuleLoader()

    def loader(described: Any, result: Any) -> Any:
        asked.append((described, result))
        return default(described, result)

    result = run_through_rpc(measured, built, 1, 2, 0, 0.0, remote, None, module_loader=loader)
    assert result.error_no == MeasureErrorNo.NO_ERROR and len(result.costs) == 2
    assert asked == [(remote, built)]

    def failing(described: Any, result: Any) -> Any:
        raise OSError("the cable is not plugged in")

    result = run_through_rpc(measured, built, 1, 2, 0, 0.0, remote, None, module_loader=failing)
    assert result.error_no == MeasureErrorNo.RUNTIME_DEVICE and "cable" in str(result.costs[0])


def test_values_of_arguments(candidate: Any, tracker: rpc.Tracker) -> None:
    """A runner measures on the values that it is given, in place of random ones."""
    measured, built, _ = candidate
    runner = RPCRunner(
        "board", "127.0.0.1", tracker.port, number=1, repeat=1, module_loader=DefaultModuleLoader()
    )
    assert runner.ref_input is None
    values = [np.ones(SIZE, "float32"), np.zeros(SIZE, "float32")]
    runner.ref_input = values
    assert runner.ref_input is values
    runner.set_task(measured.task)
    (result,) = runner.run([measured], [built])
    assert result.error_no == MeasureErrorNo.NO_ERROR, result
    runner.ref_input = [np.ones(SIZE + 1, "float32"), values[1]]
    (result,) = runner.run([measured], [built])
    assert result.error_no == MeasureErrorNo.RUNTIME_DEVICE and str(SIZE) in str(result.costs[0])
