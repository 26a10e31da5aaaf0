"""Many units at once: in workers or here, and what is said where one fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.compile import jobs
from tests.compile.test_cache import TARGET, loops

import tilewright as tvm
from tilewright.compile import UnitRequest, compile_units, link
from tilewright.compile.units import RemoteLowering, context_from_json, context_to_json, watched
from tilewright.compile.workers import WorkerPool
from tilewright.support.errors import InternalError, TilewrightError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and two processes."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_COMPILE_PROCESSES", "2")
    return tmp_path


def request(name: str, addend: float, **more: object) -> UnitRequest:
    return UnitRequest(name, TARGET, lambda: loops(addend, name), **more)  # type: ignore[arg-type]


def test_all_units_are_there_by_name() -> None:
    """And linked they run; progress is told."""
    told: list[tuple[int, int]] = []
    with watched(lambda *counts: told.append(counts)):
        units, report = compile_units([request("f", 1.0), request("g", 2.0)], TARGET)
    assert (report.compiled, report.cached) == (2, 0) and told == [(1, 2), (2, 2)]
    module = link(list(units.values()), TARGET)
    for name, expected in (("f", 1.0), ("g", 2.0)):
        result = tvm.nd.empty((8,), "float32")
        module[name](tvm.nd.array(np.zeros(8, "float32")), result)
        np.testing.assert_array_equal(result.numpy(), np.full(8, expected, "float32"))
    _, again = compile_units([request("f", 1.0), request("g", 2.0)], TARGET)
    assert (again.compiled, again.cached) == (0, 2)


def test_a_crash_of_a_worker_is_the_error_of_its_unit(place: Path) -> None:
    """It names the unit and the file with what was compiled, and nothing is tried again here."""
    lowered = []

    def lower() -> tvm.IRModule:
        lowered.append(1)
        return loops(1.0, "bad")

    bad = UnitRequest("bad", TARGET, lower, "shortcut", RemoteLowering(jobs.aborts, b"abort"))
    with pytest.raises(InternalError, match=r"bad: the compiler crashed \(SIGABRT\): LLVM ERROR") as caught:
        compile_units([bad], TARGET)
    assert not lowered
    (kept,) = (place / "cache" / "failures").iterdir()
    assert str(kept) in str(caught.value) and kept.read_bytes() == b"abort"


def test_an_exception_of_a_worker_comes_from_here() -> None:
    """With its own type and traceback, because the caller's process makes the loops itself."""

    def lower() -> tvm.IRModule:
        raise TilewrightError("the schedule does not fit")

    failing = UnitRequest("bad", TARGET, lower, None, RemoteLowering(jobs.raises, b"something else"))
    with pytest.raises(TilewrightError, match="the schedule does not fit"):
        compile_units([failing], TARGET)


def test_without_processes_units_are_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no more of them."""
    monkeypatch.setattr(WorkerPool, "run", lambda *_: (_ for _ in ()).throw(BlockingIOError("no processes")))
    units, report = compile_units([request("f", 1.0, remote=RemoteLowering(jobs.aborts, b"abort"))], TARGET)
    assert report.compiled == 1 and list(units) == ["f"]


def test_a_unit_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """TILEWRIGHT_COMPILE_SECONDS says how long that is."""
    monkeypatch.setenv("TILEWRIGHT_COMPILE_SECONDS", "1")
    slow = request("slow", 1.0, remote=RemoteLowering(jobs.sleeps, b"60"))
    with pytest.raises(InternalError, match="slow: took longer than 1 s"):
        compile_units([slow], TARGET)


def test_source_is_made_as_a_whole() -> None:
    """Generators of source print all functions together."""
    target = tvm.target.Target("c")
    requests = [UnitRequest(name, target, lambda name=name: loops(1.0, name)) for name in ("f", "g")]  # type: ignore[misc]
    units, _ = compile_units(requests, target)
    source = link(list(units.values()), target).get_source()
    assert source.count("#include <math.h>") == 1
    assert "__tvm_ffi_f" in source and "__tvm_ffi_g" in source


def test_every_stage_can_be_seen(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TILEWRIGHT_DUMP writes loops, what the code generator got, and LLVM's IR before and after."""
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(place / "dump"))
    for _ in range(2):  # the cache does not hide it
        compile_units([request("f", 1.0)], TARGET)
        files = sorted(path.name for path in (place / "dump" / "f").iterdir())
        assert files == [
            "1-lowered.llvm.py",
            "2-host.llvm.py",
            "3-host.llvm.optimized.ll",
            "3-host.llvm.s",
            "3-host.llvm.unoptimized.ll",
        ]
        assert "def f(" in (place / "dump" / "f" / "1-lowered.llvm.py").read_text()
        assert "define" in (place / "dump" / "f" / "3-host.llvm.optimized.ll").read_text()
        for path in (place / "dump" / "f").iterdir():
            path.unlink()
    (place / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(place / "file"))
    with pytest.raises(TilewrightError, match="TILEWRIGHT_DUMP: .* cannot be written"):
        compile_units([request("f", 1.0)], TARGET)


def test_a_context_travels_as_text() -> None:
    """With its options, unless they are not data."""
    context = tvm.transform.PassContext(
        opt_level=1, disabled_pass=["FoldConstant"], config={"tir.UnrollLoop": {"auto_max_step": 4}}
    )
    text = context_to_json(context)
    assert text is not None and repr(context_from_json(text)) == repr(context)
    watched = tvm.transform.PassContext(instruments=[tvm.instrument.PassTimingInstrument()])
    assert context_to_json(watched) is None
