"""Worker processes: what a job does to itself, it does to nobody else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from tests.compile import jobs

from tilewright.compile import workers
from tilewright.compile.workers import Done, Failed, WorkerPool


@pytest.fixture(params=["fork", "new interpreter"])
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    """A pool of two workers, of both kinds."""
    monkeypatch.setattr(workers, "can_fork", lambda: request.param == "fork")
    made = WorkerPool(2)
    yield made
    made.close()


def test_results_come_in_order_and_workers_stay(two: WorkerPool) -> None:
    """Every payload has its result; the processes of the first round do the second."""
    assert two.run(jobs.double, [b"a", b"b" * 1_000_000, b""], 60) == [
        Done(b"aa"),
        Done(b"b" * 2_000_000),
        Done(b""),
    ]
    first = {outcome.result for outcome in two.run(jobs.process, [b""] * 8, 60)}
    second = {outcome.result for outcome in two.run(jobs.process, [b""] * 8, 60)}
    assert first == second and len(first) == 2 and str(os.getpid()).encode() not in first


def test_an_exception_is_the_jobs(two: WorkerPool) -> None:
    """It is told as text, and the worker goes on."""
    outcomes = two.run(jobs.raises, [b"one", b"two"], 60)
    assert outcomes == [Failed("ValueError: one", False), Failed("ValueError: two", False)]
    assert two.run(jobs.double, [b"a"], 60) == [Done(b"aa")]


def test_a_crash_takes_one_job(two: WorkerPool) -> None:
    """The others are done, the message of the dying process is kept, and the pool works on."""
    outcomes = two.run(jobs.aborts, [b"a", b"abort", b"b", b"c"], 60)
    assert [outcomes[0], *outcomes[2:]] == [Done(b"a"), Done(b"b"), Done(b"c")]
    crashed = outcomes[1]
    assert isinstance(crashed, Failed) and crashed.crashed
    assert "SIGABRT" in crashed.reason and "LLVM ERROR: cannot select" in crashed.reason
    (killed,) = two.run(jobs.segfaults, [b""], 60)
    assert isinstance(killed, Failed) and "SIGSEGV" in killed.reason
    (left,) = two.run(jobs.leaves, [b""], 60)
    assert left == Failed("the compiler ended with status 7", True)
    assert two.run(jobs.double, [b"a"], 60) == [Done(b"aa")]


def test_a_job_has_a_time_limit(two: WorkerPool) -> None:
    """One that exceeds it is killed; the rest is not held up."""
    two.run(jobs.double, [b"", b""], 60)
    start = time.monotonic()
    outcomes = two.run(jobs.sleeps, [b"60", b"0", b"0"], 1.5)
    assert time.monotonic() - start < 20
    assert outcomes == [Failed("took longer than 1.5 s", True), Done(b"0"), Done(b"0")]


def test_workers_see_the_variables_of_today(two: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set, changed and removed after they were started."""
    monkeypatch.setenv("TILEWRIGHT_EXAMPLE", "1")
    assert two.run(jobs.variable, [b"TILEWRIGHT_EXAMPLE"], 60) == [Done(b"1")]
    monkeypatch.setenv("TILEWRIGHT_EXAMPLE", "2")
    assert two.run(jobs.variable, [b"TILEWRIGHT_EXAMPLE"] * 2, 60) == [Done(b"2")] * 2
    monkeypatch.delenv("TILEWRIGHT_EXAMPLE")
    assert two.run(jobs.variable, [b"TILEWRIGHT_EXAMPLE"] * 2, 60) == [Done(b"unset")] * 2


def test_several_threads_share_the_workers(two: WorkerPool) -> None:
    """None waits for ever, and none gets another's results."""
    found: dict[int, object] = {}

    def go(number: int) -> None:
        found[number] = two.run(jobs.double, [f"{number}.{i}".encode() for i in range(20)], 60)

    threads = [threading.Thread(target=go, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for number in range(6):
        assert found[number] == [Done(f"{number}.{i}".encode() * 2) for i in range(20)]


def test_where_no_worker_can_be_started_the_caller_may_do_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program that embeds Python, say, whose executable is not an interpreter."""
    monkeypatch.setattr(workers, "can_fork", lambda: False)
    monkeypatch.setattr(workers.sys, "executable", "/bin/false")
    none = WorkerPool(1)
    (outcome,) = none.run(jobs.double, [b"a"], 60)
    assert isinstance(outcome, Failed) and not outcome.crashed
    none.close()


def test_an_idle_worker_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next job gets a new one."""
    monkeypatch.setattr(workers, "can_fork", lambda: True)
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.2)
    one = WorkerPool(1)
    first = one.run(jobs.process, [b""], 60)
    time.sleep(1)
    second = one.run(jobs.process, [b""], 60)
    assert isinstance(second[0], Done) and first != second
    one.close()
