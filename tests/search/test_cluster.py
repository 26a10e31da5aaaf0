"""Builders on a Ray cluster."""

from __future__ import annotations

import pytest
from tests.search import candidates
from tests.search.candidates import SIZE, TARGET

from tilewright.ir.module import IRModule
from tilewright.search import Argument, BuildJob, ErrorKind, RunOptions, build_all, run_all
from tilewright.search.cluster import RayBuilders, resolved
from tilewright.support.errors import ScheduleError, TilewrightError

ray = pytest.importorskip("ray")


def raises() -> IRModule:
    raise ScheduleError("this tile does not fit")


@pytest.mark.slow
def test_candidates_are_built_by_actors_and_measured_here() -> None:
    """Errors keep their kinds, those that take too long are given up, and the actors that replace them work."""
    with RayBuilders(workers=2) as builders:
        jobs = [BuildJob(lambda rows=rows: candidates.product(rows), TARGET) for rows in (2, 4)]
        built = build_all([BuildJob(raises, TARGET), *jobs], 120)
        late = builders.build(jobs, 0.0)
        again = build_all(jobs[:1], 120)
    assert [one.error_kind for one in built] == [ErrorKind.INSTANTIATION_ERROR, 0, 0]
    assert {one.error_kind for one in late} == {ErrorKind.BUILD_TIMEOUT}
    assert again[0].digest == built[1].digest
    arguments = [Argument((SIZE, SIZE), "float32")] * 3
    options = RunOptions(number=1, repeat=1, seconds=60)
    assert all(one.is_good for one in run_all(built[1:], arguments, options))
    assert not ray.is_initialized()


def test_builders_compile_for_this_processor() -> None:
    """Wherever they are: the target says which it is."""
    target = resolved(TARGET)
    assert target.attrs["mcpu"] and target.attrs["mtriple"] and target.attrs["mattr"]
    assert str(resolved(target)) == str(target)


def test_mistakes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of builders that makes no sense, and a missing package."""
    with pytest.raises(TilewrightError, match="at least one builder"):
        RayBuilders(workers=0)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(TilewrightError, match=r"pip install tilewright\[tune\]"):
        RayBuilders()
