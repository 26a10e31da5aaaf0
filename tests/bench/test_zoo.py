"""The zoo compares outputs, and survives what its processes do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]


sys.path.insert(0, str(ROOT / "bench"))
import limited  # noqa: E402
import zoo  # noqa: E402
import zoo_doors as doors  # noqa: E402

sys.path.remove(str(ROOT / "bench"))


def test_a_small_difference_is_relative_to_the_largest_value() -> None:
    expected = torch.tensor([0.0, 1000.0])
    assert doors.compared([expected + 0.05], expected)["status"] == "ok"
    assert doors.compared([expected + 0.5], expected)["status"] == "differs"
    assert doors.compared([torch.tensor([0.0, float("nan")])], expected)["status"] == "differs"
    assert doors.compared([torch.zeros(3)], expected)["status"] == "differs"
    assert doors.compared([], expected)["status"] == "differs"


def test_doors_agree_with_eager() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    inputs = (torch.randn(2, 4),)
    with torch.no_grad():
        expected = model(*inputs)
    for name in ("export", "compile", "script"):
        for through in doors.THROUGH:
            if (name, through) != ("compile", "reference"):
                found, note = doors.DOORS[name](model, inputs, through)
                assert doors.compared(found, expected)["status"] == "ok" and not note, (name, through)


@pytest.mark.parametrize(("work", "status"), [
    (lambda: {"status": "ok"}, "ok"),
    (lambda: os._exit(3), "crash"),
    (lambda: time.sleep(60), "time limit"),
    (lambda: 1 / 0, "error"),
])  # fmt: skip
def test_whatever_becomes_of_a_process_is_a_result(work: Any, status: str) -> None:
    assert limited.run(work, 3.0, int(64e9))["status"] == status


def test_results_come_one_by_one_until_a_process_ends() -> None:
    def work() -> Iterator[dict[str, Any]]:
        yield {"status": "ok"}
        yield {"status": "differs"}
        os._exit(3)

    assert [one["status"] for one in limited.series(work, 10.0, int(64e9))] == ["ok", "differs", "crash"]


def test_tasks_share_time_and_none_outlives_a_failure() -> None:
    """As many processes at once as asked for; when one task fails, the others' processes are ended."""

    def asleep() -> Iterator[dict[str, Any]]:
        time.sleep(1.0)
        yield {"status": "ok", "process": os.getpid()}
        time.sleep(600.0)

    found: list[int] = []

    def task() -> Generator[None]:
        with closing(limited.polled(asleep, 30.0, int(64e9))) as results:
            for result in results:
                if result is None:
                    yield
                    continue
                found.append(result["process"])
                if len(found) == 2:
                    raise KeyboardInterrupt

    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        limited.together((task() for _ in range(3)), 2)
    assert len(set(found)) == 2 and time.perf_counter() - started < 20.0
    for process in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_what_was_interpreted_is_run_again_to_be_compiled() -> None:
    known = {"status": "ok", "through": "quick"}
    assert zoo.is_done(known, "quick", again=True) and zoo.is_done(known, "reference", again=False)
    assert not zoo.is_done(known, "code", again=False) and not zoo.is_done(None, "code", again=False)
    failure = {"status": "error", "through": "code"}
    assert zoo.is_done(failure, "code", again=False) and not zoo.is_done(failure, "code", again=True)
    part = known | {"note": "torch.compile(backend='tilewright') leaves to PyTorch: aten::svd"}
    assert zoo.is_done(part, "quick", again=False) and not zoo.is_done(part, "quick", again=True)


def test_time_in_which_a_run_is_suspended_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 601.0, 602.0])
    monkeypatch.setattr(limited.time, "perf_counter", lambda: next(times))
    clock = limited._Clock()
    assert [clock.seconds() for _ in range(3)] == [1.0, 4.0, 5.0]
    assert clock.suspended == 597.0
