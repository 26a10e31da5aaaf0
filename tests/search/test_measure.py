"""Building and measuring: what a candidate does to itself, it does to nobody else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.search import candidates
from tests.search.candidates import SIZE, TARGET

from tilewright.ir.module import IRModule
from tilewright.search import (
    Argument,
    BuildJob,
    Built,
    ErrorKind,
    RunOptions,
    build_all,
    building,
    run_all,
    running,
)
from tilewright.search.outcomes import Measured, count_outliers, typical
from tilewright.support.errors import ScheduleError

ARGUMENTS = tuple(Argument((SIZE, SIZE), "float32") for _ in range(3))


@pytest.fixture(scope="module")
def good() -> list[Built]:
    """Three products that work, in one batch."""
    return build_all([BuildJob(lambda rows=rows: candidates.product(rows), TARGET) for rows in (2, 4, 8)])


@pytest.fixture(autouse=True, scope="module")
def _end_runners() -> Iterator[None]:
    yield
    running.close_runners()


def raises() -> IRModule:
    raise ScheduleError("this tile does not fit")


def crashes() -> IRModule:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def hangs() -> IRModule:
    time.sleep(600)
    raise AssertionError


def eats_memory() -> IRModule:
    kept = [bytearray(1 << 20) for _ in range(1 << 20)]
    raise AssertionError(len(kept))


@pytest.mark.unguarded  # in a process of its own: another test's thread would keep this one from forking
def test_what_a_candidate_does_while_it_is_built_is_its_own() -> None:
    """An error, a crash, a hang and a memory hog have their kinds; the rest of the batch is built."""
    made = [raises, crashes, lambda: candidates.product(4), hangs, eats_memory, candidates.product(4)]
    starts = time.monotonic()
    built = build_all([BuildJob(one, TARGET) for one in made], seconds=5.0, memory=1 << 29)
    assert time.monotonic() - starts < 60
    assert [one.error_kind for one in built] == [
        ErrorKind.INSTANTIATION_ERROR,
        ErrorKind.COMPILE_HOST,
        ErrorKind.NO_ERROR,
        ErrorKind.BUILD_TIMEOUT,
        ErrorKind.INSTANTIATION_ERROR,
        ErrorKind.NO_ERROR,
    ]
    assert built[0].message == "ScheduleError: this tile does not fit"
    assert "SIGSEGV" in built[1].message and "5 s" in built[3].message and "MemoryError" in built[4].message
    assert built[2].is_good and built[2].digest == built[5].digest


def test_equal_loops_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch finds the code of earlier ones by the loops."""
    (first,) = build_all([BuildJob(candidates.product(4), TARGET)])
    assert first.digest in building._kept
    monkeypatch.setattr(building, "compile_parts", lambda parts: pytest.fail("compiled again"))
    (second,) = build_all([BuildJob(lambda: candidates.product(4), TARGET)])
    assert second.unit == first.unit and second.digest == first.digest


def test_where_other_threads_run_interpreters_build(good: list[Built]) -> None:
    """A process with threads does not fork: the same code comes from new interpreters."""
    building.forget_kept()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        built = build_all(
            [BuildJob(raises, TARGET), BuildJob(lambda: candidates.product(2), TARGET)], processes=1
        )
    finally:
        done.set()
        thread.join()
    assert [one.error_kind for one in built] == [ErrorKind.INSTANTIATION_ERROR, ErrorKind.NO_ERROR]
    assert built[1].digest == good[0].digest


def test_candidates_are_measured_in_turn_with_the_incumbent(good: list[Built]) -> None:
    """As often as asked, with the times of both; what was not built keeps its error."""
    failed = Built(None, 1.0, "", ErrorKind.COMPILE_HOST, "no code")
    seen = []
    measured = run_all(
        [good[0], failed, good[1]],
        ARGUMENTS,
        RunOptions(number=2, repeat=4, outputs=1),
        good[2],
        on_done=lambda number, one: seen.append(number),
    )
    assert seen == [0, 1, 2]
    assert [one.error_kind for one in measured] == [0, ErrorKind.COMPILE_HOST, 0]
    assert measured[1].message == "no code" and measured[1].cost == float("inf") and measured[1].gain == 0
    for one in (measured[0], measured[2]):
        assert len(one.costs) == len(one.incumbent_costs) == 4
        assert 0 < one.cost < 1 and one.gain > 0 and one.seconds > 0 and abs(one.timestamp - time.time()) < 60


def test_a_slow_candidate_is_not_repeated(good: list[Built]) -> None:
    """One whose first call takes too long has one cost."""
    (measured,) = run_all([good[0]], ARGUMENTS, RunOptions(repeat=5, give_up_above=1e-9))
    assert len(measured.costs) == 1 and measured.is_good


@pytest.mark.parametrize(
    ("loops", "seconds", "kind", "words"),
    [
        (lambda: candidates.calls("raise", 11), 60, ErrorKind.RUNTIME_DEVICE, "SIGSEGV"),
        (lambda: candidates.calls("sleep", 600), 2, ErrorKind.RUN_TIMEOUT, "took longer than 2 s"),
        (lambda: candidates.wrong(), 60, ErrorKind.WRONG_ANSWER, "differs from the incumbent's by"),
    ],
    ids=["crash", "hang", "wrong result"],
)
def test_what_a_candidate_does_while_it_runs_is_its_own(
    good: list[Built], loops: object, seconds: float, kind: ErrorKind, words: str
) -> None:
    """Those before and behind it are measured, and it costs no more than its time limit."""
    (bad,) = build_all([BuildJob(loops, TARGET)])  # type: ignore[arg-type]
    assert bad.is_good, bad.message
    starts = time.monotonic()
    options = RunOptions(number=1, repeat=2, seconds=seconds, outputs=1)
    measured = run_all([good[0], bad, good[1]], ARGUMENTS, options, good[2])
    assert time.monotonic() - starts < seconds + 13
    assert [one.error_kind for one in measured] == [ErrorKind.NO_ERROR, kind, ErrorKind.NO_ERROR]
    assert words in measured[1].message


def test_a_candidate_that_eats_memory_fails(good: list[Built]) -> None:
    """What it may take is limited; the measuring process is not the system's victim."""
    (bad,) = build_all([BuildJob(candidates.needs_memory, TARGET)])
    running.close_runners()
    refused, fine = run_all([bad, good[0]], ARGUMENTS, RunOptions(memory=1 << 28, seconds=120))
    assert refused.error_kind == ErrorKind.RUNTIME_DEVICE and "cannot allocate" in refused.message
    assert fine.is_good
    running.close_runners()
    (allowed,) = run_all([bad], ARGUMENTS, RunOptions(memory=1 << 32, number=1, repeat=1, seconds=120))
    assert allowed.is_good


def test_values_of_arguments_are_used(good: list[Built], tmp_path: Path) -> None:
    """What is given is what the candidate gets: results that agree with the incumbent's on it."""
    identity = Argument((SIZE, SIZE), "float32", np.eye(SIZE, dtype="float32"))
    running.write_arguments(tmp_path, [identity, Argument((2,), "int8"), Argument((3,), "int64")])
    made = running.child.load_arguments(str(tmp_path), running.child.device("cpu", 0))
    np.testing.assert_array_equal(made[0].numpy(), np.eye(SIZE))
    assert made[1].numpy().max() < 8 and not made[2].numpy().any()


def test_typical_times_leave_out_what_other_programs_cost() -> None:
    """The faster half counts, and half as long again as the fastest is an outlier."""
    assert typical([1.0]) == 1.0 and typical([1.0, 1.1, 9.0]) == 1.05
    assert typical([1.0, 1.1, 1.2, 7.0, 8.0, 9.0]) == 1.1
    assert count_outliers([1.0, 1.4, 1.6, 3.0]) == 2
    lucky = Measured((1.0, 2.0, 1.0, 2.0), ErrorKind.NO_ERROR, "", 0, 0, (2.0, 2.0, 2.0, 2.0))
    assert lucky.gain == 1.0
