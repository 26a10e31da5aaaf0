"""Builders on a Ray cluster: on this machine, or on as many as the cluster has.

    with RayBuilders(workers=2):          # or RayBuilders("ray://head:10001")
        tuner.tune()

Loops are made here and compiled there, for this machine's processor; measuring stays here. Each builder is an actor
with one core. An actor that crashes or exceeds the time limit costs its own candidate, and is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compile.workers import Done, Failed, Outcome
from tilewright.search.building import Builders, BuildJob, build_loops, built_from, payloads_of
from tilewright.search.outcomes import Built
from tilewright.support.errors import TilewrightError
from tilewright.target import Target
from tilewright.target.cpu import llvm_machine_options

_MEMORY = 4 << 30


def _ray() -> Any:
    try:
        import ray
    except ImportError as problem:
        raise TilewrightError(
            "builders on a cluster need ray: pip install tilewright[tune], or build on this machine only"
        ) from problem
    return ray


class _Builder:
    """What an actor does."""

    def build(self, payload: bytes) -> bytes:
        """Compile loops."""
        return build_loops(payload)


class RayBuilders(Builders):
    """Builders of a cluster. ``address`` is Ray's, such as ``auto`` or ``ray://host:10001``; without one, Ray is
    started on this machine unless it runs already. ``workers`` is how many actors build, by default one a core of the
    cluster."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise TilewrightError(f"at least one builder is needed, not {workers}")
        ray = _ray()
        self._owns = not ray.is_initialized()
        if self._owns:
            try:
                ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
            except (ConnectionError, ValueError, RuntimeError) as problem:
                where = address or "this machine"
                raise TilewrightError(f"Ray on {where} cannot be reached: {problem}") from problem
        self._ray = ray
        self._remote = ray.remote(num_cpus=1, max_restarts=0)(_Builder)
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._idle = [self._remote.remote() for _ in range(count)]

    def close(self) -> None:
        """End the builders, and Ray where it was started for them."""
        for actor in self._idle:
            self._ray.kill(actor)
        self._idle = []
        if self._owns:
            self._ray.shutdown()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        self.close()

    def build(
        self, jobs: Sequence[BuildJob], seconds: float, on_done: Callable[[int], None] | None = None
    ) -> list[Built]:
        """Build every job, each within so many seconds."""
        payloads, built = payloads_of(jobs, _MEMORY, resolved)
        waiting = list(payloads)[::-1]
        busy: dict[Any, tuple[int, Any, float]] = {}
        while waiting or busy:
            while waiting and self._idle:
                actor, number = self._idle.pop(), waiting.pop()
                busy[actor.build.remote(payloads[number])] = (number, actor, time.monotonic())
            first = min(starts for _, _, starts in busy.values())
            done, _ = self._ray.wait(list(busy), timeout=max(0.0, first + seconds - time.monotonic()))
            late = [one for one, (_, _, starts) in busy.items() if time.monotonic() - starts >= seconds]
            for one in dict.fromkeys([*done, *late]):
                number, actor, starts = busy.pop(one)
                outcome = self._outcome(one, actor, one in done, seconds)
                built[number] = built_from(outcome, seconds, time.monotonic() - starts)
                if on_done is not None:
                    on_done(number)
        return [built[number] for number in range(len(jobs))]

    def _outcome(self, result: Any, actor: Any, is_done: bool, seconds: float) -> Outcome:
        """What became of a job; an actor that did not survive it is replaced."""
        if not is_done:
            self._ray.kill(actor)
            self._idle.append(self._remote.remote())
            return Failed(f"took longer than {seconds:g} s", crashed=True, timed_out=True)
        try:
            answer = Done(self._ray.get(result))
        except self._ray.exceptions.RayActorError:
            self._idle.append(self._remote.remote())
            return Failed("the compiler crashed, and its Ray actor with it", crashed=True)
        except self._ray.exceptions.RayError as problem:
            self._idle.append(actor)
            return Failed(str(problem).strip().splitlines()[-1], crashed=False)
        self._idle.append(actor)
        return answer


def resolved(target: Target) -> Target:
    """A target that says which processor it is for: ``llvm`` would mean the builder's."""
    if target.kind.name != "llvm":
        return target
    triple, cpu, attributes = llvm_machine_options(target)
    said = {**target.export(), "mtriple": triple, "mcpu": cpu}
    if attributes:
        said["mattr"] = attributes.split(",")
    return Target(said)
