"""Candidates measured on devices of a tracker: both tuners, and what a candidate does to its session."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.rpc.boards import tracker_with_a_board
from tests.search import candidates
from tests.search.candidates import SIZE, TARGET

from tilewright import auto_scheduler, autotvm, rpc, te
from tilewright.autotvm.measure import check_remote, request_remote
from tilewright.search import Argument, BuildJob, ErrorKind, RunOptions, build_all
from tilewright.search.remote import Devices, run_remotely
from tilewright.support.errors import RPCError

ARGUMENTS = tuple(Argument((SIZE, SIZE), "float32") for _ in range(3))


@pytest.fixture(scope="module")
def tracker() -> Iterator[rpc.Tracker]:
    """A tracker with one device."""
    with tracker_with_a_board() as made:
        yield made


def test_candidates_fail_for_themselves(tracker: rpc.Tracker) -> None:
    """One that crashes or hangs ends its session; the device measures the next."""
    makers = [candidates.product, lambda: candidates.calls("abort"), candidates.product]
    built = build_all([BuildJob(make, TARGET) for make in makers])
    devices = Devices("board", "127.0.0.1", tracker.port, at_once=2)
    done: list[int] = []
    found = run_remotely(
        built, ARGUMENTS, RunOptions(repeat=2, number=2), devices, on_done=lambda place, _: done.append(place)
    )
    kinds = [one.error_kind for one in found]
    assert kinds == [ErrorKind.NO_ERROR, ErrorKind.RUNTIME_DEVICE, ErrorKind.NO_ERROR]
    assert len(found[0].costs) == 2 and 0 < found[0].cost < 1
    assert sorted(done) == [0, 1, 2]


@autotvm.template("tests.search.remote")
def template(size):
    a = te.placeholder((size, size), name="a")
    b = te.compute((size, size), lambda i, j: a[i, j] * 2.0, name="b")
    schedule = te.create_schedule(b.op)
    config = autotvm.get_config()
    config.define_split("tile", schedule[b].op.axis[1], num_outputs=2)
    config["tile"].apply(schedule, b, schedule[b].op.axis[1])
    return schedule, [a, b]


def test_autotvm_tunes_there(tracker: rpc.Tracker) -> None:
    task = autotvm.task.create("tests.search.remote", (32,), "llvm")
    runner = autotvm.RPCRunner("board", "127.0.0.1", tracker.port, number=2, repeat=1, cooldown_interval=0)
    measured = []
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(
        2,
        autotvm.measure_option(autotvm.LocalBuilder(n_parallel=1), runner),
        callbacks=[lambda _, inputs, results: measured.extend(results)],
    )
    assert [result.error_no for result in measured] == [0, 0]
    assert check_remote("llvm", "board", "127.0.0.1", tracker.port)
    assert not check_remote("llvm", "phone", "127.0.0.1", tracker.port, timeout=1)
    with request_remote("board", "127.0.0.1", tracker.port) as session:
        assert session.cpu().exist


@auto_scheduler.register_workload
def remote_doubling(size):
    a = te.placeholder((size, size), name="a")
    return [a, te.compute((size, size), lambda i, j: a[i, j] * 2.0, name="b")]


def test_auto_scheduler_measures_there(tracker: rpc.Tracker) -> None:
    runner = auto_scheduler.RPCRunner("board", "127.0.0.1", tracker.port, number=2, min_repeat_ms=0)
    task = auto_scheduler.SearchTask(func=remote_doubling, args=(32,), target="llvm")
    given = auto_scheduler.measure.MeasureInput(task, task.compute_dag.init_state)
    (built,) = auto_scheduler.LocalBuilder(n_parallel=1).build([given])
    (result,) = runner.run([given], [built])
    assert result.error_no == 0 and 0 < np.mean([float(cost) for cost in result.costs]) < 1


def test_a_device_that_is_not_there(tracker: rpc.Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.auto_scheduler.runners._SECONDS_FOR_A_DEVICE", 1)
    with pytest.raises(RPCError, match="cannot get the device 'phone'"):
        auto_scheduler.RPCRunner("phone", "127.0.0.1", tracker.port)
