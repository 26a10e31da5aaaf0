"""Builds candidates in worker processes: one that crashes, hangs or eats memory costs its own time limit only.

Where this process can fork, lowering happens in the workers too: each is a fork that finds the jobs, and the code that
earlier batches compiled, in its memory. Otherwise the loops are made here, and travel to workers as text.
"""

from __future__ import annotations

import gc
import json
import struct
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

from tilewright.compile import cache
from tilewright.compile.build import host_of
from tilewright.compile.unit import compile_parts, split
from tilewright.compile.units import context_from_json, context_to_json
from tilewright.compile.workers import Failed, Outcome, WorkerPool, can_fork
from tilewright.ir.module import IRModule
from tilewright.ir.serialize import SerializationError, load_json, save_json
from tilewright.ir.transform import PassContext
from tilewright.search.limits import default_memory, end_with_parent, limit_memory
from tilewright.search.outcomes import Built, ErrorKind
from tilewright.support.errors import TilewrightError
from tilewright.support.options import compile_processes
from tilewright.target import Target

_HEAD = struct.Struct("<I")
_MOST_KEPT_BYTES = 256 << 20


@dataclass(frozen=True)
class BuildJob:
    """A candidate: its lowered loops, or what makes them (called in a fork where possible), and where they run: by
    default, with the host that a build of them would have."""

    loops: IRModule | Callable[[], IRModule]
    target: Target
    host: Target | None = None

    @property
    def launching(self) -> Target:
        """The target of the code that launches the candidate."""
        return host_of([self.target], self.host)


class Builders(ABC):
    """Builders on other machines. ``with builders:`` has ``build_all`` use them."""

    @abstractmethod
    def build(
        self, jobs: Sequence[BuildJob], seconds: float, on_done: Callable[[int], None] | None = None
    ) -> list[Built]:
        """Build every job, each within so many seconds."""

    def __enter__(self) -> Self:
        self._token = _BUILDERS.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _BUILDERS.reset(self._token)


_BUILDERS: ContextVar[Builders | None] = ContextVar("tilewright_builders", default=None)


@dataclass
class _Batch:
    """What the forks of a batch find in their memory."""

    jobs: Sequence[BuildJob]
    memory: int
    is_limited: bool = False


_batch = _Batch((), 0)
_kept: OrderedDict[str, bytes] = OrderedDict()
"""Code by its digest: candidates that differ in choices, not in loops, are compiled once."""


def build_all(
    jobs: Sequence[BuildJob],
    seconds: float = 15.0,
    processes: int | None = None,
    memory: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[Built]:
    """Build every job, each within so many seconds and bytes of memory, in so many processes (all cores by default), or
    by the ``Builders`` that are in use."""
    global _batch
    if not jobs:
        return []
    elsewhere = _BUILDERS.get()
    if elsewhere is not None:
        return elsewhere.build(jobs, seconds, on_done)
    count = min(processes or compile_processes(), len(jobs))
    room = default_memory(count) if memory is None else memory
    if not can_fork():
        return _build_from_here(jobs, seconds, count, room, on_done)
    _batch = _Batch(jobs, room)
    pool = WorkerPool(count)
    starts = time.monotonic()
    try:
        outcomes = pool.run(
            build_number, [str(number).encode() for number in range(len(jobs))], seconds, on_done
        )
    finally:
        pool.close()
        _batch = _Batch((), 0)
    return [built_from(outcome, seconds, time.monotonic() - starts) for outcome in outcomes]


def build_number(payload: bytes) -> bytes:
    """What a fork does: build a job of the batch that it has inherited."""
    if not _batch.is_limited:
        _batch.is_limited = True
        # What the fork has inherited stays: looking for garbage there would copy its memory page by page.
        gc.freeze()
        end_with_parent()
        limit_memory(_batch.memory)
    return _build(_batch.jobs[int(payload)])


def _build(job: BuildJob) -> bytes:
    starts = time.monotonic()
    kind = ErrorKind.INSTANTIATION_ERROR
    try:
        loops = job.loops if isinstance(job.loops, IRModule) else job.loops()
        kind = ErrorKind.COMPILE_HOST
        parts = split({job.target: loops}, job.launching)
        digest = parts.digest()
        if digest in _kept:
            return _answer(b"", digest=digest, seconds=time.monotonic() - starts)
        # What builds of models have compiled is used; candidates, of which few are ever used again, are not stored.
        known = cache.find_unit(digest)
        if known is not None:
            return _answer(known.to_bytes(), digest=digest, seconds=time.monotonic() - starts)
        if parts.devices:
            kind = ErrorKind.COMPILE_DEVICE
        unit = compile_parts(parts).to_bytes()
    except Exception as problem:  # noqa: BLE001 - whatever a candidate raises is its own failure
        message = f"{type(problem).__name__}: {problem}"
        return _answer(b"", kind=kind, message=message, seconds=time.monotonic() - starts)
    return _answer(unit, digest=digest, seconds=time.monotonic() - starts)


def _answer(unit: bytes, **said: object) -> bytes:
    head = json.dumps(said).encode()
    return _HEAD.pack(len(head)) + head + unit


def built_from(outcome: Outcome, limit: float, spent: float) -> Built:
    """What a worker's outcome says of a candidate."""
    if isinstance(outcome, Failed):
        kind = ErrorKind.BUILD_TIMEOUT if outcome.timed_out else ErrorKind.COMPILE_HOST
        return Built(None, min(limit, spent), "", kind, outcome.reason)
    (size,) = _HEAD.unpack_from(outcome.result)
    said = json.loads(outcome.result[_HEAD.size : _HEAD.size + size])
    unit = outcome.result[_HEAD.size + size :]
    if "kind" in said:
        return Built(None, said["seconds"], "", ErrorKind(said["kind"]), said["message"])
    return Built(_keep(said["digest"], unit), said["seconds"], said["digest"])


def _keep(digest: str, unit: bytes) -> bytes:
    """Keep the code for candidates with the same loops, and forget what was used longest ago."""
    found = unit or _kept[digest]
    _kept[digest] = found
    _kept.move_to_end(digest)
    total = sum(map(len, _kept.values()))
    while total > _MOST_KEPT_BYTES and len(_kept) > 1:
        total -= len(_kept.popitem(last=False)[1])
    return found


def _build_from_here(
    jobs: Sequence[BuildJob],
    seconds: float,
    processes: int,
    memory: int,
    on_done: Callable[[int], None] | None,
) -> list[Built]:
    """Lower in this process, compile in others that are new interpreters."""
    payloads, built = payloads_of(jobs, memory)
    pool = _interpreters(processes)
    starts = time.monotonic()
    numbers = list(payloads)
    outcomes = pool.run(
        build_loops,
        list(payloads.values()),
        seconds,
        None if on_done is None else lambda place: on_done(numbers[place]),
    )
    for number, outcome in zip(numbers, outcomes, strict=True):
        built[number] = built_from(outcome, seconds, time.monotonic() - starts)
    return [built[number] for number in range(len(jobs))]


def payloads_of(
    jobs: Sequence[BuildJob], memory: int, resolve: Callable[[Target], Target] = lambda target: target
) -> tuple[dict[int, bytes], dict[int, Built]]:
    """What ``build_loops`` takes for each job, by its number, and the failures of those that cannot be lowered.
    ``resolve`` gives the target that other machines should use."""
    payloads: dict[int, bytes] = {}
    failed: dict[int, Built] = {}
    context = context_to_json(PassContext.current()) or context_to_json(PassContext())
    for number, job in enumerate(jobs):
        starts = time.monotonic()
        try:
            loops = save_json(job.loops if isinstance(job.loops, IRModule) else job.loops())
        except SerializationError as problem:
            raise TilewrightError(
                f"a candidate cannot be sent to another process ({problem}); tune from a process without other "
                "threads, which can fork"
            ) from problem
        except Exception as problem:  # noqa: BLE001 - whatever a candidate raises is its own failure
            message = f"{type(problem).__name__}: {problem}"
            spent = time.monotonic() - starts
            failed[number] = Built(None, spent, "", ErrorKind.INSTANTIATION_ERROR, message)
            continue
        said = [str(resolve(job.target)), str(resolve(job.launching)), context, memory, loops]
        payloads[number] = json.dumps(said).encode()
    return payloads, failed


_pools: dict[int, WorkerPool] = {}


def _interpreters(processes: int) -> WorkerPool:
    """New interpreters take a second to start, so they stay for further batches."""
    found = _pools.get(processes)
    if found is None or not found.belongs_here:
        found = _pools[processes] = WorkerPool(processes)
    # Starting is not part of any candidate's time.
    found.run(start, [b""] * processes, 120.0)
    return found


def start(payload: bytes) -> bytes:
    """A job that does nothing."""
    return payload


def build_loops(payload: bytes) -> bytes:
    """What a new interpreter does."""
    target, host, context, memory, loops = json.loads(payload)
    limit_memory(memory)
    end_with_parent()
    module = load_json(loops)
    assert isinstance(module, IRModule)
    with context_from_json(context):
        return _build(BuildJob(module, Target(target), Target(host)))


def forget_kept() -> None:
    """Forget the code of earlier batches."""
    _kept.clear()


__all__ = ["BuildJob", "Built", "build_all", "forget_kept"]
